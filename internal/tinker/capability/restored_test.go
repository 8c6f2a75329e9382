// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// await waits for a result.
func await[T any](t *testing.T, future *client.Future[T], err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	value, err := future.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// createModel creates a model as a run does.
func createModel(t *testing.T, checker capability.Checker, session string, number int) *client.Model {
	t.Helper()
	model, err := checker.API.CreateModel(t.Context(), tinker.CreateModelRequest{Session: session, ModelSeq: number,
		BaseModel: tinkersim.ModelName, Lora: checker.Lora})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// saveState saves a state after some optimizer steps, and returns its path.
func saveState(t *testing.T, checker capability.Checker, session string, steps int) string {
	t.Helper()
	model := createModel(t, checker, session, 0)
	sum := tinker.Datum{ModelInput: tinker.Text([]int32{49, 43, 49}), LossFnInputs: map[string]tinker.Tensor{
		tinker.InputTargetTokens: tinker.Ints([]int64{43, 49, 61}), tinker.InputWeights: tinker.Floats([]float32{0, 0, 1}),
	}}
	for range steps {
		pass, err := model.ForwardBackward(t.Context(), []tinker.Datum{sum}, tinker.Loss{Name: "cross_entropy"})
		await(t, pass, err)
		step, err := model.OptimStep(t.Context(), tinker.AdamParams{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
		await(t, step, err)
	}
	saving, err := model.SaveState(t.Context(), client.SaveRequest{Name: "state"})
	return await(t, saving, err).Path
}

func TestRestored(t *testing.T) {
	cases := map[string]struct {
		steps int
		rules []fault.Rule
		want  bool
	}{
		"one step":                           {steps: 1, want: true},
		"many steps":                         {steps: 30, want: true},
		"a load loses the state":             {steps: 30, rules: []fault.Rule{{Op: "load_weights", Do: fault.ColdAdam}}},
		"a load loses the state of one step": {steps: 1, rules: []fault.Rule{{Op: "load_weights", Do: fault.ColdAdam}}},
		"every load loses the state": {steps: 5,
			rules: []fault.Rule{{Op: "load_weights", Do: fault.ColdAdam, Count: -1}}},
		"no steps, so there is no state to lose": {steps: 0,
			rules: []fault.Rule{{Op: "load_weights", Do: fault.ColdAdam, Count: -1}}, want: true},
		"temporary errors": {steps: 5, rules: []fault.Rule{{Op: "load_weights", Occurrence: 2, Do: fault.Fail,
			Category: "server"}}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, checker := server(t, chain())
			session, err := checker.API.CreateSession(t.Context(), client.SessionRequest{})
			if err != nil {
				t.Fatal(err)
			}
			path := saveState(t, checker, session, tc.steps)
			addFaults(t, sim, tc.rules...)
			model := createModel(t, checker, session, 1)
			loading, err := model.LoadState(t.Context(), path, true)
			await(t, loading, err)
			got, err := checker.Restored(t.Context(), model)
			if err != nil || got != tc.want {
				t.Errorf("Restored = %v, %v, want %v", got, err, tc.want)
			}
			for checkpoint, err := range checker.API.Checkpoints(t.Context()) {
				if checkpoint.TinkerPath != path {
					t.Errorf("%s remains (%v)", checkpoint.TinkerPath, err)
				}
			}
		})
	}
}
