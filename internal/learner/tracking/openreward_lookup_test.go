// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
)

// TestLookUpOfWhatIsNotThere looks up an environment that the service does not host, and checks that the service is
// not asked again for each rollout.
func TestLookUpOfWhatIsNotThere(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	defer server.Close()
	o := newOpenReward(contracttracking.OpenReward{BaseURL: server.URL})
	for range 20 {
		if ids := o.lookUp(t.Context(), openreward.Deployment{Name: "me/sums", Variant: "hard"}); ids != (deploymentIDs{}) {
			t.Errorf("lookUp() = %v, want no ids", ids)
		}
	}
	if n := asked.Load(); n != maxLookups {
		t.Errorf("the service is asked %d times, want %d", n, maxLookups)
	}
}
