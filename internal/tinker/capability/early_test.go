// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestSnapshotsAreCheckedEarly delays the save of the first model's state until sampler weights of another model are
// sampled from, and checks that the check of snapshots does not wait for that state.
func TestSnapshotsAreCheckedEarly(t *testing.T) {
	sampled := make(chan struct{})
	once := sync.OnceFunc(func() { close(sampled) })
	_, checker := server(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			switch {
			case strings.HasSuffix(r.URL.Path, "/create_sampling_session") && bytes.Contains(body, []byte("probe-snapshot")):
				once()
			case strings.HasSuffix(r.URL.Path, "/save_weights"):
				select {
				case <-sampled:
				case <-r.Context().Done():
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	checker.Features = []capability.Feature{capability.SamplerSnapshot, capability.OptimizerRestore}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := checker.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if lacking := lacks(report, checker.Features); len(lacking) > 0 {
		t.Errorf("the simulator lacks %v", lacking)
	}
}

// TestEarlyCheckEndsWithItsAttempt makes a save of the first model fail after the check of another model has begun
// beside it. Both begin again, and the findings of the first attempt do not count.
func TestEarlyCheckEndsWithItsAttempt(t *testing.T) {
	sim, checker := server(t, chain())
	checker.Features = []capability.Feature{capability.SamplerSnapshot, capability.OptimizerRestore}
	addFaults(t, sim, fault.Rule{Op: "save_weights", Name: "probe-state", Occurrence: 1, Count: 1, Do: fault.Fail,
		Category: "server"})
	if lacking := lacks(run(t, checker), checker.Features); len(lacking) > 0 {
		t.Errorf("after an attempt that failed, the simulator lacks %v", lacking)
	}
	if sim.Faults().List()[0].Hits != 1 {
		t.Errorf("no attempt failed: got %v, want 1", sim.Faults().List()[0].Hits)
	}
}
