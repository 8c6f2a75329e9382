// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
)

func TestCounters(t *testing.T) {
	c := NewCounters()
	c.CountCall("asample")
	c.CountCall("asample")
	c.CountOperation("optim_step", Training, 2*time.Second)
	c.CountOperation("optim_step", Training, time.Second)
	c.CountOperation("save_weights", Saving, 4*time.Second)
	c.CountPass(Payer{}, 5, false)
	c.CountPass(Payer{}, 6, true)
	c.CountSample(Payer{}, 7, 8)
	c.CountSample(Payer{}, 9, 10)
	c.CountSampling(sampling.Stats{Busy: time.Second, Batches: 1, Rows: 2, Tokens: 3})
	current := sampling.Stats{Busy: 2 * time.Second, Batches: 10, Rows: 20, Tokens: 30}
	want := Stats{
		SamplingSeconds: 3, TrainingSeconds: 3, SavingSeconds: 4,
		SampleBatches: 11, SampledRows: 22, SampledTokens: 33, TrainedTokens: 11,
		Billed:     Billed{PromptTokens: 16, SampledTokens: 18, ForwardBackwardTokens: 5, ForwardTokens: 6},
		Operations: map[string]int64{"optim_step": 2, "save_weights": 1},
		Calls:      map[string]int64{"asample": 2},
	}
	for range 2 { // reading does not add the current engine twice
		got := c.Read(current)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		got.Calls["asample"] = 9 // the maps are copies
	}
}
