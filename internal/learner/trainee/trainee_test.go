// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

const key = "tml-weights"

// opener returns a factory of an attempt, and its own simulator.
func opener(t *testing.T) (*Factory, *tinkersim.Server) {
	t.Helper()
	sim, url := simulatortest.Serve(t, tinkersim.Options{APIKey: key})
	api, err := client.New(client.Config{BaseURL: url, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	session := ""
	return &Factory{
		API: api, Logger: slog.New(slog.DiscardHandler), Run: contract.RunReference{UID: "uid"}, Attempt: 1,
		RequireOptimizer: true, Now: time.Now,
		Base: contract.Model{Name: tinkersim.ModelName, LoraRank: 2, TrainAttention: true, TrainMLP: true,
			TrainUnembed: true},
		Lost: func(string) { session = "" },
		Session: func(ctx context.Context) (string, error) {
			if session == "" {
				session, err = api.CreateSession(ctx, client.SessionRequest{})
			}
			return session, err
		},
	}, sim
}

func script(t *testing.T, sim *tinkersim.Server, rules ...fault.Rule) {
	t.Helper()
	if _, err := sim.Faults().Add(rules); err != nil {
		t.Fatal(err)
	}
}

// datum returns a sequence whose last token was sampled.
func datum(token int32) rl.Datum {
	return rl.Datum{
		Tokens: []int32{49, 43}, Targets: []int32{43, token}, Logprobs: []float32{0, -1},
		Advantages: []float32{0, 1}, Mask: []bool{false, true},
	}
}

var step = Step{
	Datums: []rl.Datum{datum(50), datum(51), datum(52)}, Substeps: 2,
	Losses: LossesOf(algorithm.Algorithm{Loss: algorithm.Loss{Name: algorithm.LossImportanceSampling}}),
	Adam:   tinker.AdamParams{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8},
}

// train submits a step and waits for its replies.
func train(t *testing.T, m *Model) (Replies, error) {
	t.Helper()
	training, err := m.Train(t.Context(), step)
	if err != nil {
		return Replies{}, err
	}
	return training.Wait(t.Context())
}

func fresh(t *testing.T, o *Factory) *Model {
	t.Helper()
	model, err := o.Fresh(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// checkpointName returns the name of the state of a step.
func checkpointName(step int64) rl.CheckpointName {
	return rl.CheckpointName{Run: "00000001", Step: step, Attempt: 1, Model: 1}
}

func save(t *testing.T, m *Model, step int64) string {
	t.Helper()
	pending, err := m.SaveState(t.Context(), checkpointName(step))
	if err != nil {
		t.Fatal(err)
	}
	path, err := pending.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrain(t *testing.T) {
	o, _ := opener(t)
	replies, err := train(t, fresh(t, o))
	if err != nil {
		t.Fatal(err)
	}
	var lengths []int
	for _, logprobs := range replies.Logprobs {
		lengths = append(lengths, len(logprobs))
	}
	if diff := cmp.Diff([]int{2, 2, 2}, lengths); diff != "" {
		t.Errorf("log-probs by datum (-want +got):\n%s", diff)
	}
	if _, ok := replies.Metrics[lossSum]; !ok {
		t.Errorf("metrics %v lack %s", replies.Metrics, lossSum)
	}
}

func TestTrainClassifiesFailures(t *testing.T) {
	cases := map[string]struct {
		rule fault.Rule
		want problem.Code
	}{
		"refused data":       {fault.Rule{Op: "forward_backward", Do: fault.Fail, Category: "user"}, problem.DataRefused},
		"refused optimizer":  {fault.Rule{Op: "optim_step", Do: fault.Fail, Category: "user"}, problem.SettingsRefused},
		"the server's fault": {fault.Rule{Op: "optim_step", Do: fault.Fail, Category: "server"}, failure.Outage},
		"a lost reply":       {fault.Rule{Op: "forward_backward", Do: fault.LoseFuture}, failure.Outage},
		"a refused key":      {fault.Rule{Op: "optim_step", Do: fault.Refuse, Status: 401}, problem.KeyRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, sim := opener(t)
			script(t, sim, tc.rule)
			_, err := train(t, fresh(t, o))
			if got := failure.CodeOf(err); got != tc.want {
				t.Errorf("Train = %v of code %q, want %q", err, got, tc.want)
			}
		})
	}
	t.Run("a lost model", func(t *testing.T) {
		o, _ := opener(t)
		model := fresh(t, o)
		model.Abandon(t.Context())
		if _, err := train(t, model); failure.CodeOf(err) != failure.LostModel {
			t.Errorf("Train = %v of code %q, want %q", err, failure.CodeOf(err), failure.LostModel)
		}
	})
}

func TestAccepts(t *testing.T) {
	o, _ := opener(t)
	model := fresh(t, o)
	for name, tc := range map[string]struct {
		token int32
		want  bool
	}{"a token of the vocabulary": {50, true}, "no token": {1 << 20, false}} {
		got, err := model.Accepts(t.Context(), []rl.Datum{datum(tc.token)}, step.Losses)
		if err != nil || got != tc.want {
			t.Errorf("%s is accepted: %v (%v), want %v", name, got, err, tc.want)
		}
	}
}

// TestSaveUnderAnExistingName saves a second time under the same name, as a server does if it executes a late copy of
// a save.
func TestSaveUnderAnExistingName(t *testing.T) {
	o, _ := opener(t)
	model := fresh(t, o)
	first := save(t, model, 1)
	want, err := train(t, model)
	if err != nil {
		t.Fatal(err)
	}
	if second := save(t, model, 1); second != first || second != model.StatePath(checkpointName(1).String()) {
		t.Errorf("saved again under its name it is %s, first %s", second, first)
	}
	restored, _, err := o.Restore(t.Context(), []checkpoints.Entry{{Path: first, Listed: true}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := train(t, restored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Logprobs, got.Logprobs); diff != "" {
		t.Errorf("log-probabilities of the state after the second save (-first +now):\n%s", diff)
	}
}

func TestCheckpointsSayWhoseTheyAre(t *testing.T) {
	for name, described := range map[string]tinker.Metadata{
		"described": {"namespace": "team", "run": "sums", "uid": "u"}, "not described": nil,
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := opener(t)
			o.Described = described
			model := fresh(t, o)
			save(t, model, 7)
			if _, err := model.SaveSampler(t.Context(), checkpointName(8)); err != nil {
				t.Fatal(err)
			}
			found, err := o.API.RunCheckpoints(t.Context(), model.ID())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]tinker.Metadata{}
			for _, one := range found {
				got[one.CheckpointType] = one.UserMetadata
			}
			want := map[string]tinker.Metadata{tinker.CheckpointTraining: nil, tinker.CheckpointSampler: nil}
			if described != nil {
				want[tinker.CheckpointTraining] = tinker.Metadata{"namespace": "team", "run": "sums", "uid": "u", "step": "7"}
				want[tinker.CheckpointSampler] = tinker.Metadata{"namespace": "team", "run": "sums", "uid": "u", "step": "8"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("metadata of checkpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestoreTakesTheNewestThatLoads(t *testing.T) {
	entry := func(path string, listed bool) checkpoints.Entry { return checkpoints.Entry{Path: path, Listed: listed} }
	o, sim := opener(t)
	model := fresh(t, o)
	older, newer := save(t, model, 1), save(t, model, 2)
	missing := model.StatePath("never-saved")
	cases := map[string]struct {
		rules []fault.Rule
		want  string
	}{
		"the newest, past one that was never saved": {nil, newer},
		"the one before a damaged one": {[]fault.Rule{{Op: "load_weights", Name: "s000002", Do: fault.Corrupt,
			Count: -1}}, older},
		"the newest, when the outage is over": {[]fault.Rule{{Op: "load_weights", Name: "s000002", Do: fault.Fail,
			Category: "server"}}, newer},
		"none": {[]fault.Rule{{Op: "load_weights", Do: fault.Missing, Count: -1}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sim.Faults().Clear()
			script(t, sim, tc.rules...)
			_, got, err := o.Restore(t.Context(), []checkpoints.Entry{entry(missing, false), entry(newer, true),
				entry(older, true)})
			if got.Path != tc.want || (failure.CodeOf(err) == problem.NoUsableCheckpoint) != (tc.want == "") {
				t.Errorf("restored %q (%v), want %q", got.Path, err, tc.want)
			}
		})
	}
}

func TestStateIsNotRefusedWhileTheStoreFails(t *testing.T) {
	o, sim := opener(t)
	clock := time.Unix(0, 0)
	o.Now = func() time.Time { return clock }
	model := fresh(t, o)
	older, newer := save(t, model, 1), save(t, model, 2)
	states := []checkpoints.Entry{{Path: newer, Listed: true}, {Path: older, Listed: true}}
	restore := func() (string, error) {
		_, got, err := o.Restore(t.Context(), states)
		return got.Path, err
	}
	script(t, sim, fault.Rule{Op: "load_weights", Do: fault.Fail, Category: "server", Count: -1})
	for range 2 {
		if got, err := restore(); failure.CodeOf(err) != failure.Outage {
			t.Fatalf("restored %q (%v) in an outage", got, err)
		}
		clock = clock.Add(6 * time.Minute)
	}
	sim.Faults().Clear()
	script(t, sim, fault.Rule{Op: "load_weights", Name: "s000002", Do: fault.Fail, Category: "server", Count: -1})
	if got, err := restore(); got != older {
		t.Errorf("restored %q (%v) while the newest has not loaded for minutes, want %q", got, err, older)
	}
	sim.Faults().Clear()
	if got, err := restore(); got != newer {
		t.Errorf("restored %q (%v) after the outage, want %q", got, err, newer)
	}
}

func TestExpiredSessionIsMadeAnew(t *testing.T) {
	o, sim := opener(t)
	fresh(t, o)
	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Fresh(t.Context(), nil); err == nil {
		t.Fatal("a model was made in an expired session")
	}
	fresh(t, o)
}
