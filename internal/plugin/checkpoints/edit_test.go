// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// sharing returns which checkpoints of the endpoint are public, by their paths.
func sharing(t *testing.T, at Endpoint) map[string]bool {
	t.Helper()
	api, err := at.Client(func(string) {}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	public := map[string]bool{}
	for c, err := range api.Checkpoints(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		public[c.TinkerPath] = c.Public
	}
	return public
}

// apply runs an editor on the checkpoint and returns its output.
func apply(t *testing.T, e editor, at Endpoint, targets []target) (string, error) {
	t.Helper()
	format := output.JSON
	e.format = &format
	var stdout, stderr bytes.Buffer
	err := e.edit(t.Context(), cli.IO{Stdout: &stdout, Stderr: &stderr}, at, targets)
	return stdout.String(), err
}

func published(public bool) editor {
	e := editor{done: "public"}
	if !public {
		e.done = "private"
	}
	e.apply = publish(public)
	return e
}

func TestPublishAndDeleteChangeTheCheckpointsOfTinkersim(t *testing.T) {
	url, saved := trained(t)
	at := Endpoint{baseURL: url, key: "tml-test", http: http.DefaultClient}
	// The status names the sampler weights of the newest and the best checkpoint only.
	short := v1alpha1.Checkpoint{Step: saved.Step, State: saved.State}
	run := &v1alpha1.TrainingRun{Status: v1alpha1.TrainingRunStatus{Checkpoints: []v1alpha1.Checkpoint{short}}}
	targetsOf := func(e editor) []target {
		t.Helper()
		chosen, err := e.choose(run)
		if err == nil {
			err = at.AddSamplers(t.Context(), cli.IO{Stderr: io.Discard}, chosen)
		}
		var targets []target
		if err == nil {
			targets, err = e.targets(chosen)
		}
		if err != nil {
			t.Fatal(err)
		}
		return targets
	}
	sampler := targetsOf(editor{})
	both := targetsOf(editor{state: true, guards: true, steps: []int64{1}})
	if len(sampler) != 1 || sampler[0].Path != saved.Sampler || len(both) != 2 || both[1].Path != saved.State {
		t.Fatalf("the targets are %+v and %+v", sampler, both)
	}
	for range 2 { // A checkpoint that is public already stays so.
		printed, err := apply(t, published(true), at, sampler)
		if err != nil {
			t.Fatal(err)
		}
		var parsed []target
		if err := json.Unmarshal([]byte(printed), &parsed); err != nil || len(parsed) != 1 || parsed[0].Result != "public" {
			t.Errorf("it prints %s", printed)
		}
	}
	if got := sharing(t, at); !got[saved.Sampler] || got[saved.State] {
		t.Errorf("public are %v, want the sampler weights alone", got)
	}
	if _, err := apply(t, published(false), at, both); err != nil {
		t.Fatal(err)
	}
	if got := sharing(t, at); got[saved.Sampler] || got[saved.State] || len(got) != 2 {
		t.Errorf("after unpublish, public are %v", got)
	}
	if _, err := apply(t, editor{done: "deleted", apply: remove}, at, both); err != nil {
		t.Fatal(err)
	}
	if got := sharing(t, at); len(got) != 0 {
		t.Errorf("after delete, the endpoint has %v", got)
	}
	if left := targetsOf(editor{state: true, guards: true, steps: []int64{1}}); len(left) != 1 ||
		left[0].Path != saved.State {
		t.Errorf("after delete, the targets are %v, want the state that the status names", left)
	}
	printed, err := apply(t, editor{done: "deleted", apply: remove}, at, both)
	if err == nil || !strings.Contains(err.Error(), "was deleted or has expired") || strings.TrimSpace(printed) != "[]" {
		t.Errorf("a checkpoint that does not exist: %v, and the output %s", err, printed)
	}
	_, err = apply(t, published(true), Endpoint{baseURL: url, key: "tml-test", http: http.DefaultClient},
		[]target{{Path: "tinker://other/weights/one"}})
	if client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("publishing a checkpoint that does not exist: %v", err)
	}
}

func TestDeleteRefusesACheckpointInUse(t *testing.T) {
	used := newRun()
	used.Spec.Tinker.BaseURL = "http://sim"
	begun := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{
		InitFrom: &v1alpha1.InitFrom{Checkpoint: "tinker://m/weights/20"}}}
	begun.Name = "begun"
	byName := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{
		InitFrom: &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "arithmetic", Step: new(int64(20))}}}}
	byName.Name = "by-name"
	later := begun.DeepCopy()
	later.Status.LatestCheckpoint = "3"
	later.Status.Checkpoints = []v1alpha1.Checkpoint{{Name: "3", Step: 3, State: "tinker://l/weights/3"}}
	other := func(name string, change func(*v1alpha1.TrainingRunSpec)) *v1alpha1.TrainingRun {
		run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Algorithm: &algorithm.Algorithm{}}}
		run.Name = name
		change(&run.Spec)
		return run
	}
	const sampler = "tinker://m/sampler_weights/20"
	refers := other("refers", func(spec *v1alpha1.TrainingRunSpec) {
		spec.Algorithm.KL = &algorithm.KL{Reference: &algorithm.Reference{Checkpoint: sampler}}
	})
	learns := other("learns", func(spec *v1alpha1.TrainingRunSpec) {
		spec.Environments = []v1alpha1.TrainingEnvironment{{Teacher: &algorithm.Teacher{Checkpoint: sampler}}}
	})
	lagging := newRun()
	lagging.Spec.Algorithm = &algorithm.Algorithm{Lag: 20}
	succeeded := newRun()
	succeeded.Status.State = v1alpha1.StateSucceeded
	for name, tc := range map[string]struct {
		run   *v1alpha1.TrainingRun
		step  int64
		other *v1alpha1.TrainingRun
		force bool
		want  string
	}{
		"newest":              {run: used, step: 40, want: "would resume from it"},
		"result":              {run: succeeded, step: 40, want: "is the result"},
		"best":                {run: used, step: 10, want: "best one"},
		"begins by path":      {run: used, step: 20, other: begun, want: `run "begun" begins with it`},
		"begins by name":      {run: used, step: 20, other: byName, want: `run "by-name" begins with it`},
		"reference":           {run: used, step: 20, other: refers, want: `run "refers" compares its policy with it`},
		"teacher":             {run: used, step: 20, other: learns, want: `run "learns" learns from it`},
		"window of lag":       {run: lagging, step: 20, want: "samples with it"},
		"has begun already":   {run: used, step: 20, other: later},
		"unused":              {run: used, step: 20},
		"newest with --force": {run: used, step: 40, force: true},
	} {
		t.Run(name, func(t *testing.T) {
			runs := []v1alpha1.TrainingRun{*tc.run}
			if tc.other != nil {
				runs = append(runs, *tc.other)
			}
			e := editor{guards: true, state: true, steps: []int64{tc.step}, force: tc.force}
			chosen, err := e.choose(tc.run)
			if err == nil {
				// As AddSamplers does for sampler weights that the status does not name.
				chosen[0].Sampler = cmp.Or(chosen[0].Sampler, fmt.Sprintf("tinker://m/sampler_weights/%d", tc.step))
				err = e.guard(tc.run, chosen, users{runs: runs})
			}
			switch {
			case tc.want == "" && (err != nil || len(chosen) != 1 || chosen[0].Step != tc.step):
				t.Errorf("chosen are %v, %v", chosen, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(),
				"--force")):
				t.Errorf("the error is %v, want it to have %q and --force", err, tc.want)
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	e := editor{question: "Delete"}
	targets := []target{{Step: 3, Path: "tinker://m/weights/3"}}
	if asked := e.ask(targets); asked != "  step 3  tinker://m/weights/3\nDelete this checkpoint?" {
		t.Errorf("it asks %q", asked)
	}
	env := cli.IO{Stdin: strings.NewReader("y\n")}
	if err := e.confirm(t.Context(), env, targets); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without a terminal the error is %v, want one that names --yes", err)
	}
	e.yes = true
	if err := e.confirm(t.Context(), env, targets); err != nil {
		t.Errorf("with --yes the error is %v", err)
	}
	for want, wrong := range map[string]editor{"--step is required": {guards: true},
		"no step is below 0": {guards: true, steps: []int64{-1}},
		"exclude each other": {best: true, steps: []int64{1}}} {
		if err := wrong.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to have %q", err, want)
		}
	}
}

// TestDeleteRefusesAFrozenModel checks that delete refuses a checkpoint that an agent asks beside the policy.
func TestDeleteRefusesAFrozenModel(t *testing.T) {
	const sampler = "tinker://m/sampler_weights/20"
	env := v1alpha1.RewardEnvironment{}
	env.Name, env.Spec.Interaction = "agents", &environment.Interaction{Agent: &environment.Agent{
		Frozen: []environment.FrozenModel{{Name: "base", Model: "m"}, {Name: "teacher", Checkpoint: sampler}}}}
	all := []v1alpha1.RewardEnvironment{env}
	if got := judgedBy(v1alpha1.Checkpoint{Step: 20, Sampler: sampler}, all); !strings.Contains(got, "frozen/teacher") {
		t.Errorf("judgedBy() = %q, want that the frozen model is named", got)
	}
	if got := judgedBy(v1alpha1.Checkpoint{Step: 21, Sampler: "tinker://m/sampler_weights/21"}, all); got != "" {
		t.Errorf("another checkpoint: judgedBy() = %q", got)
	}
}

// TestDeleteRefusesTheModelOfAJudge checks that delete refuses a checkpoint that a RewardEnvironment's judge samples
// from.
func TestDeleteRefusesTheModelOfAJudge(t *testing.T) {
	const sampler = "tinker://m/sampler_weights/20"
	rule := environment.RewardRule{Rubric: &environment.Rubric{
		Judge: environment.Judge{Tinker: &environment.TinkerJudge{Checkpoint: sampler}}}}
	for name, reward := range map[string]*environment.Reward{
		"alone":    {RewardRule: rule},
		"weighted": {Weighted: []environment.WeightedReward{{Name: "a"}, {Name: "b", RewardRule: rule}}},
		"none":     nil,
		"another":  {RewardRule: environment.RewardRule{Rubric: &environment.Rubric{}}},
	} {
		env := v1alpha1.RewardEnvironment{}
		env.Name, env.Spec.Reward = "judged", reward
		got := judgedBy(v1alpha1.Checkpoint{Step: 20, Sampler: sampler}, []v1alpha1.RewardEnvironment{env})
		if want := name == "alone" || name == "weighted"; strings.Contains(got, `"judged"`) != want {
			t.Errorf("%s: judgedBy() = %q, want that the environment is named: %t", name, got, want)
		}
	}
}
