// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestSessionsSayWhoseTheyAre(t *testing.T) {
	file := contract.RunFile{Run: contract.RunReference{Namespace: "team", Name: "sums", UID: "u"}, Attempt: 3,
		ProjectID: "p"}
	metadata := map[string]string{"namespace": "team", "run": "sums", "uid": "u", "attempt": "3"}
	for baseURL, want := range map[string]client.SessionRequest{
		"http://tinkersim": {ProjectID: "p", UserMetadata: metadata},
		"https://tinker.thinkingmachines.dev/services/tinker-prod": {ProjectID: "p", UserMetadata: metadata,
			DisplayName: "team/sums"},
	} {
		file.Fixed.BaseURL = baseURL
		if diff := cmp.Diff(want, sessionOf(file)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", baseURL, diff)
		}
		var described tinker.Metadata
		if want.DisplayName != "" {
			described = tinker.Metadata{"namespace": "team", "run": "sums", "uid": "u"}
		}
		if diff := cmp.Diff(described, describedBy(file)); diff != "" {
			t.Errorf("checkpoints of %s (-want +got):\n%s", baseURL, diff)
		}
	}
}
