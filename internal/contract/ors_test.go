// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

func orsDefinition() Definition {
	return Definition{ORS: &ORS{
		ORS: environment.ORS{
			URL: "http://127.0.0.1:8082", Environment: "sums", Toolset: "cli",
			AnswerTool:         &environment.AnswerTool{Name: "submit", Argument: "answer"},
			APIKeySecretKeyRef: &ref.SecretKey{Name: "keys", Key: "ors"},
			Secrets: []environment.SessionSecret{{Name: "KEY", SecretKeyRef: ref.SecretKey{Name: "keys", Key: "session"},
				AllowedHosts: []string{"api.test"}}},
			SecretDelivery: "Header", Timeouts: environment.ORSTimeouts{CreateSeconds: 120, CallSeconds: 300}, MaxSessions: 7,
		},
		Server: &Server{
			ServerImage: environment.ServerImage{Image: "environment:dev", Port: 8082, Shared: true,
				Command: []string{"serve"}},
			Container: Container{Env: json.RawMessage(`[{"name":"A","value":"b"}]`),
				Resources: json.RawMessage(`{"requests":{"memory":"8Gi"}}`)},
		},
	}}
}

func TestORSRoundTrip(t *testing.T) {
	data, err := EncodeDefinition(orsDefinition())
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDefinition(data)
	if err != nil {
		t.Fatal(err)
	}
	// They are indented when they are written.
	for _, raw := range []*json.RawMessage{&got.ORS.Server.Env, &got.ORS.Server.Resources} {
		var compact bytes.Buffer
		if err := json.Compact(&compact, *raw); err != nil {
			t.Fatal(err)
		}
		*raw = compact.Bytes()
	}
	if diff := cmp.Diff(orsDefinition(), got); diff != "" {
		t.Errorf("the definition changed on its way (-written +read):\n%s", diff)
	}
	if url := got.ORS.URLFor("run-a"); url != "http://run-a-server-8082:8082" {
		t.Errorf("URLFor(run-a) = %q, want the URL of the shared server", url)
	}
	alone := orsDefinition()
	alone.ORS.Server.Shared = false
	if data, err = EncodeDefinition(alone); err != nil || strings.Contains(string(data), "shared") {
		t.Errorf("EncodeDefinition = %s, %v; want no mention of shared where the server is not shared", data, err)
	}
}
