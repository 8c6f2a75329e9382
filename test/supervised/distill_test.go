// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package supervised

import (
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/rl/distill/distilltest"
)

const recordedSteps = "../../internal/rl/distill/testdata/cookbook.jsonl.gz"

// TestTeachersAreThoseOfTheCookbook trains with the cookbook's train_on_policy.py, with two teachers that are other
// models of the simulator, and compares the results of its arithmetic on the recorded samples and log-probabilities.
func TestTeachersAreThoseOfTheCookbook(t *testing.T) {
	url := serve(t)
	for i, c := range versions(t) {
		for _, discount := range []float64{0, 0.9} {
			if i > 0 && discount == 0 {
				continue // The other version has the same arithmetic.
			}
			config := map[string]any{
				"url": url, "model": byteModel, "renderer": "role_colon", "log": filepath.Join(t.TempDir(), "run"),
				"rank": 8, "steps": 2, "learning_rate": 1e-3,
				"teachers": []string{byteModel, byteModel + "-countdown"}, "coefficient": 0.7, "discount": discount,
				"prompts": []string{"What is 2 + 3?", "Count to three."}, "group_size": 3, "max_tokens": 6,
			}
			lines := c.run(t, url, "loops.py", "distill", write(t, config))
			steps := distilltest.Read(t, lines)
			if len(steps) != 2 {
				t.Fatalf("%d steps are recorded, want 2", len(steps))
			}
			for _, step := range steps {
				distilltest.Compare(t, step)
			}
			if *update && i == 0 && discount > 0 {
				checkRecorded(t, recordedSteps, lines, true)
			}
		}
	}
	for _, step := range distilltest.Read(t, unzip(t, recordedSteps)) {
		distilltest.Compare(t, step)
	}
}
