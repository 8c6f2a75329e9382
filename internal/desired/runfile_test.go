// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

func file(t *testing.T, run *v1alpha1.TrainingRun) contract.RunFile {
	t.Helper()
	f, err := File(FileInput{Run: run, Attempt: 1, Pins: testPins(), DefaultBaseURL: "https://hosted",
		InitFrom: "tinker://m/weights/c"})
	if err != nil {
		t.Fatalf("File: %v", err)
	}
	return f
}

func TestFileHasAllDefaults(t *testing.T) {
	golden(t, "run-file", file(t, testRun()))
}

func TestFileOfEverything(t *testing.T) {
	golden(t, "run-file-everything", file(t, testRun(func(run *v1alpha1.TrainingRun) {
		s := &run.Spec
		s.Tinker.BaseURL = "http://own"
		s.Model = v1alpha1.Model{Name: "m", LoraRank: new(int32(16)), TrainModules: []v1alpha1.TrainModule{v1alpha1.TrainMLP},
			Seed:     new(int64(7)),
			Renderer: &v1alpha1.Renderer{Name: "qwen3_instruct"},
			Tokenizer: &v1alpha1.Tokenizer{URL: "https://host/tokenizer.json",
				SHA256: strings.Repeat("a", 64)}}
		s.Environments = []v1alpha1.TrainingEnvironment{{
			EnvironmentUse: v1alpha1.EnvironmentUse{
				Name: "z", EnvironmentRef: &v1alpha1.EnvironmentRef{Name: "arithmetic"}, Retries: new(int32(1)),
				Sampling: playing.Sampling{MaxTokens: 100, Temperature: new(0.5), TopP: 0.9, TopK: 4,
					Stop: []string{"END"}, SharedPrompt: new(true)},
				Limits: playing.Limits{Turns: 1, ToolCalls: 5, PromptTokens: 2,
					TrajectoryTokens: 3, EpisodeSeconds: 4, OnLimit: playing.LimitExclude},
				Reward: playing.EpisodeReward{Reduction: playing.ReductionLast, Nonterminal: new(-1.0), Min: new(-1.0),
					Max: new(1.0)},
			},
			Weight: new(0.25), GroupSize: 5, MinMembers: new(int32(4)), OnUnavailable: v1alpha1.UnavailableSkip,
			Splits: []v1alpha1.Split{{Name: "train", Shuffle: new(false), Take: new(int64(10))},
				{Name: "test", Take: new(int64(9999))}},
		}, {
			EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 16}},
			Weight:         new(0.75), GroupSize: 5,
		}}
		s.Algorithm = &algorithm.Algorithm{
			TasksPerStep: 4, Steps: 9, Seed: 3, Substeps: 2, Lag: 1,
			Advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleGroupStd,
				DDoF: 1},
			Loss:           algorithm.Loss{Name: algorithm.LossCISPO, ClipHigh: new(3.0)},
			ConstantGroups: algorithm.DropConstantGroups, OnDroppedGroup: algorithm.ShrinkDroppedGroups,
			Optimizer: algorithm.Optimizer{LearningRate: 4e-5, Schedule: algorithm.ScheduleCosine, WarmupSteps: 10,
				Beta1: new(0.8),
				Beta2: new(0.9), Epsilon: 1e-12, WeightDecay: 0.1, GradClipNorm: 1},
		}
		s.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://m/weights/c", Optimizer: v1alpha1.OptimizerRestore}
		s.Checkpoints = v1alpha1.Checkpoints{EverySteps: new(int64(10)), TTLSeconds: new(int64(0)), KeepLast: new(int32(3)),
			Rolling:  v1alpha1.RollingCheckpoints{EverySteps: new(int64(2)), TTLSeconds: new(int64(3600))},
			KeepBest: new(int32(2)), BestMetric: "test/z/pass@1"}
		s.Evaluation = &v1alpha1.Evaluation{EverySteps: new(int64(0)), Before: new(false), After: new(true),
			SamplingShare: new(0.5),
			Environments: []v1alpha1.EvaluationEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "z", Sampling: playing.Sampling{Temperature: new(0.0)}},
				InheritFrom:    "z",
				Splits:         []v1alpha1.EvaluationSplit{{Name: "test", Take: new(int64(64))}},
				SamplesPerTask: new(int32(4)), PassAt: []int32{4, 1},
			}}}
		s.Rollouts.Concurrency = new(int32(128))
		s.FailurePolicy.RequireOptimizerState = new(false)
		s.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
		s.Budget = &v1alpha1.Budget{Tokens: new(int64(1000)), USD: new(9.5), Prices: []v1alpha1.ModelPrice{
			{Model: s.Model.Name, PromptUSDPerMillion: 1, SampledUSDPerMillion: 2, TrainedUSDPerMillion: 3},
		}}
		s.Tracking = &tracking.Tracking{WandB: &tracking.WandB{
			Project: "p", Entity: "team", RunName: "fast", BaseURL: "https://wandb.example.com", Tags: []string{"b", "a"},
			APIKeySecretKeyRef: ref.SecretKey{Name: "wandb", Key: "WANDB_API_KEY"},
		}, TensorBoard: &tracking.TensorBoard{RunName: "fast"}, MLflow: &tracking.MLflow{
			BaseURL: "https://mlflow.example.com/", Experiment: "e", RunName: "fast", Tags: map[string]string{"team": "x"},
			Username: "me", PasswordSecretKeyRef: &ref.SecretKey{Name: "mlflow", Key: "password"},
		}, OpenReward: &tracking.OpenReward{
			RunName: "fast", BaseURL: "https://openreward.example.com", APIKeySecretKeyRef: ref.SecretKey{Name: "openreward",
				Key: "OPENREWARD_API_KEY"},
		}}
		run.Status.Capabilities = &v1alpha1.Capabilities{BaseURL: "http://own", Model: "m", Supported: []string{"seed"},
			Ignored: []string{"ttl"}, Unsupported: []string{"loss.dro"}}
		run.Status.Checkpoints = []v1alpha1.Checkpoint{{Step: 2, State: "tinker://m/weights/2"},
			{Step: 1, Sampler: "tinker://m/sampler_weights/1"}}
	})))
}

func TestFileOfEvaluationAlone(t *testing.T) {
	f := file(t, testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Mode, run.Spec.Algorithm, run.Spec.Environments = v1alpha1.ModeEvaluate, nil, nil
		run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://m/sampler_weights/c"}
		run.Spec.Evaluation = &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{{
			EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 16}},
		}}}
	}))
	if f.Fixed.Algorithm != nil || len(f.Fixed.Environments) != 0 || len(f.Evaluation.Environments) != 1 {
		t.Errorf("File = %+v, want an evaluation and nothing else", f.Fixed)
	}
}

func TestFileHasTheVersionOfItsRun(t *testing.T) {
	in := FileInput{Run: testRun(), Attempt: 1, Pins: testPins(), DefaultBaseURL: "https://hosted"}
	for name, version := range map[string]int{
		"a run that begins now": 0, "a run of this version": contract.FormatVersion,
	} {
		in.Version = version
		if f, err := File(in); err != nil || f.Version != contract.FormatVersion {
			t.Errorf("File of %s has version %d, %v; want %d", name, f.Version, err, contract.FormatVersion)
		}
	}
	in.Version = contract.FormatVersion + 1
	if _, err := File(in); err == nil || !strings.Contains(err.Error(), "the run file has version") {
		t.Errorf("File of a later version: %v, want an error that names the version", err)
	}
}

func TestSteps(t *testing.T) {
	cases := map[string]struct {
		steps, epochs int64
		tasksPerStep  int32
		want          int64
	}{
		"steps are as given":                   {steps: 60, tasksPerStep: 32, want: 60},
		"epochs are rounded down":              {epochs: 3, tasksPerStep: 32, want: 84}, // 3 x 900 / 32 = 84.4
		"epochs make at least one step":        {epochs: 1, tasksPerStep: 1000, want: 1},
		"epochs count the tasks that are used": {epochs: 2, tasksPerStep: 900, want: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := file(t, testRun(func(run *v1alpha1.TrainingRun) {
				run.Spec.Algorithm.Steps, run.Spec.Algorithm.Epochs, run.Spec.Algorithm.TasksPerStep = tc.steps, tc.epochs,
					tc.tasksPerStep
			}))
			if got := f.Algorithm().Steps; got != tc.want {
				t.Errorf("Steps = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestBoundsOfALossDependOnItsName(t *testing.T) {
	cases := map[string]struct{ loss, want algorithm.Loss }{
		"ImportanceSampling has none": {algorithm.Loss{Name: algorithm.LossImportanceSampling},
			algorithm.Loss{Name: algorithm.LossImportanceSampling}},
		"PPO has its own": {algorithm.Loss{Name: algorithm.LossPPO},
			algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}},
		"CISPO has others": {algorithm.Loss{Name: algorithm.LossCISPO},
			algorithm.Loss{Name: algorithm.LossCISPO, ClipLow: new(0.0), ClipHigh: new(4.0)}},
		"GSPO has the bounds of PPO": {algorithm.Loss{Name: algorithm.LossGSPO},
			algorithm.Loss{Name: algorithm.LossGSPO, ClipLow: new(0.8), ClipHigh: new(1.2)}},
		"what is given wins": {algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.7)},
			algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.7), ClipHigh: new(1.2)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if fillClips(&tc.loss); !cmp.Equal(tc.want, tc.loss) {
				t.Errorf("loss (-want +got):\n%s", cmp.Diff(tc.want, tc.loss))
			}
		})
	}
}

func TestMinMembers(t *testing.T) {
	for group, want := range map[int32]int{2: 2, 3: 2, 4: 2, 5: 3, 8: 4, 16: 8} {
		f := file(t, testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].GroupSize = group }))
		if got := f.Fixed.Environments[0].MinMembers; got != want {
			t.Errorf("MinMembers of a group of %d = %d, want %d", group, got, want)
		}
	}
}

func TestFileReportsMissingSplits(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Environments[0].Splits = []v1alpha1.Split{{Name: "validation"}}
	})
	_, err := File(FileInput{Run: run, Attempt: 1, Pins: testPins(), DefaultBaseURL: "https://hosted"})
	refused, ok := errors.AsType[*SpecError](err)
	if !ok || refused.Code != problem.SplitNotFound ||
		!strings.Contains(refused.Message(), `split "validation"; it has test, train)`) {
		t.Errorf("File = %v, want a SpecError about validation", err)
	}
	if _, err := File(FileInput{Run: testRun(), Attempt: 1, Pins: testPins()}); err == nil {
		t.Error("a file without an endpoint was made")
	}
}

// TestFileRefusesSharedPromptsOfServers sets sharedPrompt for an environment server: in training, in evaluation, and
// in an evaluation that inherits it from a training environment of another kind.
func TestFileRefusesSharedPromptsOfServers(t *testing.T) {
	pins := testPins()
	served := pins["arithmetic"]
	served.Definition = contract.Definition{ORS: &contract.ORS{ORS: environment.ORS{URL: "http://ors"}}}
	pins["served"] = served
	shared, from := playing.Sampling{MaxTokens: 16, SharedPrompt: new(true)},
		&v1alpha1.EnvironmentRef{Name: "served"}
	evaluate := func(sampling playing.Sampling) func(*v1alpha1.TrainingRun) {
		return func(run *v1alpha1.TrainingRun) {
			run.Spec.Environments[0].Sampling.SharedPrompt = new(true)
			run.Spec.Evaluation = &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{
				{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "heldout", EnvironmentRef: from, Sampling: sampling},
					InheritFrom: "arithmetic"},
			}}
			admit.Default(run)
		}
	}
	cases := map[string]struct {
		change func(*v1alpha1.TrainingRun)
		want   string
	}{
		"training": {func(run *v1alpha1.TrainingRun) {
			run.Spec.Environments[0].EnvironmentRef, run.Spec.Environments[0].Sampling = from, shared
		}, "environments[arithmetic]"},
		"evaluation":                    {evaluate(shared), "evaluation.environments[heldout]"},
		"an evaluation that inherits":   {evaluate(playing.Sampling{}), "evaluation.environments[heldout]"},
		"an evaluation that says false": {evaluate(playing.Sampling{SharedPrompt: new(false)}), ""},
	}
	for name, tc := range cases {
		_, err := File(FileInput{Run: testRun(tc.change), Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"})
		refused, got := errors.AsType[*SpecError](err)
		if got != (tc.want != "") || got && (refused.Code != problem.PromptsDiffer ||
			refused.Evidence != tc.want+".sampling.sharedPrompt" || !strings.Contains(refused.Message(),
			"Set sampling.sharedPrompt to false")) || !got && err != nil {
			t.Errorf("%s: File = %v, want a SpecError about %q", name, err, tc.want)
		}
	}
}

func TestCapabilitiesAreOfOneEndpointAndModel(t *testing.T) {
	cases := map[string]struct {
		found v1alpha1.Capabilities
		kept  bool
	}{
		"of the run's are handed on": {v1alpha1.Capabilities{BaseURL: "https://hosted", Model: "tinkersim/byte-136k"},
			true},
		"of another endpoint are not": {v1alpha1.Capabilities{BaseURL: "https://other", Model: "tinkersim/byte-136k"},
			false},
		"of another base model aren't": {v1alpha1.Capabilities{BaseURL: "https://hosted", Model: "other"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := file(t, testRun(func(run *v1alpha1.TrainingRun) { run.Status.Capabilities = &tc.found }))
			if (f.Capabilities != nil) != tc.kept {
				t.Errorf("the run file has %+v", f.Capabilities)
			}
		})
	}
}

func TestFixedStaysWhatItWas(t *testing.T) {
	first := file(t, testRun())
	changed := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].GroupSize = 2 })
	second, err := File(FileInput{Run: changed, Attempt: 2, Pins: testPins(), DefaultBaseURL: "https://elsewhere",
		Fixed: &first.Fixed})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Fixed, second.Fixed); diff != "" || first.SpecDigest != second.SpecDigest {
		t.Errorf("fixed changed (-first +second):\n%s", diff)
	}
}

func TestOrderOfEnvironmentsMeansNothing(t *testing.T) {
	a := v1alpha1.TrainingEnvironment{GroupSize: 4, EnvironmentUse: v1alpha1.EnvironmentUse{
		Name: "a", EnvironmentRef: &v1alpha1.EnvironmentRef{Name: "arithmetic"},
		Sampling: playing.Sampling{MaxTokens: 1}}}
	b := a
	b.Name = "b"
	one := file(t, testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Environments = []v1alpha1.TrainingEnvironment{a, b}
	}))
	other := file(t, testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Environments = []v1alpha1.TrainingEnvironment{b, a}
	}))
	if one.SpecDigest != other.SpecDigest {
		t.Errorf("the order of a keyed list changes the spec's digest: got %v, want %v",
			one.SpecDigest, other.SpecDigest)
	}
}

func TestReferences(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Environments[0].EnvironmentRef = &v1alpha1.EnvironmentRef{Name: "shared"}
		run.Spec.Evaluation.Environments = []v1alpha1.EvaluationEnvironment{
			{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "heldout"}, InheritFrom: "arithmetic"},
			{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic",
				EnvironmentRef: &v1alpha1.EnvironmentRef{Name: "other"}}},
		}
	})
	if diff := cmp.Diff([]string{"other", "shared"}, References(run)); diff != "" {
		t.Errorf("References (-want +got):\n%s", diff)
	}
}
