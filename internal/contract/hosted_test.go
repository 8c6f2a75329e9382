// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHosts(t *testing.T) {
	cases := map[string]Hosts{
		HostedURL + "/": {API: "https://api.openreward.ai", Sessions: "https://sessions.openreward.ai"},
		"http://hosting.test:8080/v2/": {API: "http://api.hosting.test:8080/v2",
			Sessions: "http://sessions.hosting.test:8080/v2"},
		"openreward.ai": {}, "https://": {}, "https://%": {}, "": {},
	}
	for baseURL, want := range cases {
		got, err := HostsOf(baseURL)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != Hosts{}) {
			t.Errorf("HostsOf(%q): %v (-want +got):\n%s", baseURL, err, diff)
		}
	}
}

func TestParseHosted(t *testing.T) {
	cases := map[string]Hosted{
		"Owner/Name":      {Deployment: "Owner/Name"},
		"Owner/Name@hard": {Deployment: "Owner/Name", Variant: "hard"},
		"Name":            {}, "/Name": {}, "Owner/": {}, "a/b/c": {}, "Owner/Name@": {},
	}
	for name, want := range cases {
		got, err := ParseHosted(name)
		if got != want || (err == nil) != (want != Hosted{}) {
			t.Errorf("ParseHosted(%q) = %+v, %v", name, got, err)
		}
	}
}
