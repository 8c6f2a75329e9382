// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestEvaluationWithoutTraining scores a base model, a state and sampler weights, without training.
func TestEvaluationWithoutTraining(t *testing.T) {
	source := newFixture(t, nil)
	source.startRolloutWorker("s0")
	newest := source.waitFor(source.startLearner(1, nil), contract.CauseCompleted).Progress.Checkpoints[0]
	found := map[string]float64{}
	for i, tc := range []struct{ name, path string }{
		{"the base model", ""}, {"a state", newest.State}, {"sampler weights", newest.Sampler},
	} {
		digit := string(rune('0' + i))
		t.Run(tc.name, func(t *testing.T) {
			w := *source
			w.shared, w.workers, w.t = &shared{}, nil, t
			w.artifacts = t.TempDir()
			w.file.ArtifactsDir = w.artifacts
			w.file.Run.UID = "e" + digit + "3a9c2b-0000-4000-8000-000000000002"
			w.file.Fixed.Algorithm, w.file.Fixed.Environments = nil, nil
			if tc.path != "" {
				w.file.Fixed.InitFrom = &contract.InitFrom{Checkpoint: tc.path}
			}
			var err error
			if w.file.SpecDigest, err = contract.SpecDigest(w.file.Fixed); err != nil {
				t.Fatal(err)
			}
			kill := w.startRolloutWorker("e0")
			<-w.startLearner(1, w.dieAt("open.loaded", -1)).done
			verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			kill()
			got, ok := verdict.Progress.Metrics["test/pass@1"]
			if line := w.result(0); !ok || line != got {
				t.Errorf("metrics.jsonl has %v, the verdict %v (%v)", line, got, ok)
			}
			found[tc.name] = got
		})
	}
	if found["a state"] != found["sampler weights"] {
		t.Errorf("pass@1 of a state is %v, of its own sampler weights %v", found["a state"], found["sampler weights"])
	}
}
