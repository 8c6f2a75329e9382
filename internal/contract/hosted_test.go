// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHosts(t *testing.T) {
	got, err := HostsOf(HostedURL + "/")
	want := Hosts{API: "https://api.openreward.ai", Sessions: "https://sessions.openreward.ai"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("HostsOf: %v (-want +got):\n%s", err, diff)
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
