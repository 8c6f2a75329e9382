// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestCheckpointsOfCompletedRun lists the checkpoints that a run leaves at the endpoint forever: nothing deletes them
// when the run is deleted. They are the last version, the best one, and the lasting ones. All others expire.
func TestCheckpointsOfCompletedRun(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{0, 1} {
		for name, tc := range map[string]struct {
			ttl     int64
			lasting []int64
		}{
			"lasting ones expire": {604800, nil},
			"lasting ones stay":   {0, []int64{2, 4}},
		} {
			t.Run(fmt.Sprintf("lag %d, %s", lag, name), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, func(f *contract.RunFile) {
					withLag(lag)(f)
					f.Checkpoints.EverySteps, f.Checkpoints.TTLSeconds = 2, tc.ttl
				})
				w.startWorker("w0", behavior{})
				verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
				want := map[int64]bool{5: true, verdict.Progress.Best.Step: true}
				for _, step := range tc.lasting {
					want[step] = true
				}
				stay, expire := w.lifetimes()
				if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), stay); diff != "" {
					t.Errorf("steps whose checkpoints never expire (-want +got):\n%s", diff)
				}
				if len(expire) == 0 {
					t.Error("no checkpoint expires")
				}
			})
		}
	}
}

// lifetimes returns the steps with states or sampler weights that stay at the endpoint, and the steps with states or
// sampler weights that expire.
func (w *fixture) lifetimes() (stay, expire []int64) {
	w.t.Helper()
	staying, expiring := map[int64]bool{}, map[int64]bool{}
	for c, err := range w.client.Checkpoints(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		name, err := rl.ParseCheckpointName(path.Base(c.TinkerPath))
		if err != nil {
			w.t.Fatal(err)
		}
		if c.ExpiresAt == nil {
			staying[name.Step] = true
		} else {
			expiring[name.Step] = true
		}
	}
	return slices.Sorted(maps.Keys(staying)), slices.Sorted(maps.Keys(expiring))
}
