// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// newRun returns a run that trains on the environment env, changed and with its defaults.
func newRun(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "run", UID: "0123456789"},
		Spec: v1alpha1.TrainingRunSpec{
			Environments: []v1alpha1.TrainingEnvironment{{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "env"}, GroupSize: 8}},
			Algorithm:    &algorithm.Algorithm{TasksPerStep: 4, Steps: 60},
		},
	}
	for _, change := range changes {
		change(run)
	}
	admit.Default(run)
	return run
}

func readyEnvironment() *v1alpha1.RewardEnvironment {
	env := &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Name: "env", Generation: 1},
		Spec: v1alpha1.RewardEnvironmentSpec{
			Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{}},
			Reward:  &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
		},
		Status: v1alpha1.RewardEnvironmentStatus{
			ObservedGeneration: new(int64(1)), Digest: "digest",
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Probed"}},
			Splits:     []v1alpha1.SplitStatus{{Name: "train", Tasks: new(int64(900))}, {Name: "test", Tasks: new(int64(100))}},
		},
	}
	admit.Default(env)
	return env
}

// codeOf returns a problem's code and whether a person has to act.
func codeOf(p *problem.Problem) string {
	switch {
	case p == nil:
		return ""
	case p.NeedsAction() && p.Row().Grace:
		return string(p.Code) + " (needs action, after a while)"
	case p.NeedsAction():
		return string(p.Code) + " (needs action)"
	default:
		return string(p.Code)
	}
}

func TestEnvironments(t *testing.T) {
	started := func(digest string) *v1alpha1.TrainingRun {
		return newRun(func(r *v1alpha1.TrainingRun) {
			r.Status.StartTime = new(metav1.Now())
			r.Status.Environments = []v1alpha1.EnvironmentStatus{{Name: "env", Digest: digest}}
		})
	}
	one := func(env *v1alpha1.RewardEnvironment) map[string]*v1alpha1.RewardEnvironment {
		return map[string]*v1alpha1.RewardEnvironment{"env": env}
	}
	var none map[string]*v1alpha1.RewardEnvironment
	changed := func(by func(*v1alpha1.RewardEnvironment)) map[string]*v1alpha1.RewardEnvironment {
		env := readyEnvironment()
		by(env)
		return one(env)
	}
	own := desired.Pins{"env": {Digest: "pinned"}}
	cases := map[string]struct {
		run    *v1alpha1.TrainingRun
		pinned desired.Pins
		seen   map[string]*v1alpha1.RewardEnvironment
		want   string // digest that is pinned
		reason string
	}{
		"what is ready is pinned":       {newRun(), nil, one(readyEnvironment()), "digest", ""},
		"what is pinned stays":          {started("pinned"), own, one(readyEnvironment()), "pinned", ""},
		"even if the object is deleted": {started("pinned"), own, none, "pinned", ""},
		"a missing one":                 {newRun(), nil, none, "", "EnvironmentNotFound (needs action)"},
		"one that was never probed": {newRun(), nil,
			changed(func(e *v1alpha1.RewardEnvironment) { e.Status = v1alpha1.RewardEnvironmentStatus{} }), "",
			"EnvironmentProbing"},
		"one that changed since its probe": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) { e.Generation = 2 }),
			"", "EnvironmentProbing"},
		"one whose probe runs": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) {
			e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason = "Unknown", "Probing"
		}), "", "EnvironmentProbing"},
		"one that is down": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) {
			e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason = "False", "Unavailable"
		}), "", "EnvironmentNotReady"},
		"one that cannot work": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) {
			e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason = "False", "SpecInvalid"
		}), "", "EnvironmentInvalid (needs action)"},
		"one whose probe cannot start": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) {
			e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason = "False", "ProbeNotStarting"
		}), "", "EnvironmentNotStarting (needs action, after a while)"},
		"files lost, environment unchanged": {started("digest"), nil, one(readyEnvironment()), "digest", ""},
		"files lost, environment is another": {started("other"), nil, one(readyEnvironment()), "digest",
			"EnvironmentChanged (needs action)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pins, p := Environments(tc.run, tc.pinned, tc.seen)
			if got := codeOf(p); got != tc.reason || pins["env"].Digest != tc.want {
				t.Errorf("Environments = %q, %q, want %q, %q", pins["env"].Digest, got, tc.want, tc.reason)
			}
		})
	}
}

func TestInitFrom(t *testing.T) {
	from := func(step *int64) *v1alpha1.TrainingRun {
		return newRun(func(r *v1alpha1.TrainingRun) {
			r.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "source", Step: step}}
		})
	}
	source := func(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
		run := newRun(changes...)
		run.UID = "source"
		run.Status.LatestCheckpoint, run.Status.BestCheckpoint = "state30", "state20"
		run.Status.Checkpoints = []v1alpha1.Checkpoint{{Name: "state30", Step: 30, State: "state30", Sampler: "sampler30"},
			{Name: "state29", Step: 29, State: "state29"}, {Name: "state20", Step: 20, State: "state20"}}
		return run
	}
	evaluates := from(nil)
	evaluates.Spec.Mode = v1alpha1.ModeEvaluate
	complete := source(func(r *v1alpha1.TrainingRun) {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	})
	failed := source(func(r *v1alpha1.TrainingRun) {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}}
	})
	awaits := from(nil)
	awaits.Spec.InitFrom.RunRef.When = v1alpha1.WhenComplete
	empty := source()
	empty.Status = v1alpha1.TrainingRunStatus{}
	itself := from(nil)
	cases := map[string]struct {
		run, source *v1alpha1.TrainingRun
		want        string
		reason      string
	}{
		"none": {newRun(), nil, "", ""},
		"a checkpoint is itself": {newRun(
			func(r *v1alpha1.TrainingRun) { r.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "path"} }), nil, "path", ""},
		"the newest":                      {from(nil), source(), "state30", ""},
		"the newest sampler, to evaluate": {evaluates, source(), "sampler30", ""},
		"a step of the window":            {from(new(int64(29))), source(), "state29", ""},
		"the best":                        {from(new(int64(20))), source(), "state20", ""},
		"a run that is not complete":      {awaits, source(), "", "InitFromNotComplete"},
		"a run that is complete":          {awaits, complete, "state30", ""},
		"a run that failed instead":       {awaits, failed, "", "InitFromFailed (needs action)"},
		"a run that has failed":           {from(nil), failed, "state30", ""},
		"a step yet to come":              {from(new(int64(40))), source(), "", "InitFromNotReady"},
		"a step that will not come":       {from(new(int64(40))), complete, "", "InitFromNotFound (needs action)"},
		"a run that has saved nothing":    {from(nil), empty, "", "InitFromNotReady"},
		"a run that does not exist":       {from(nil), nil, "", "InitFromNotFound (needs action)"},
		"itself":                          {itself, itself, "", "InitFromNotFound (needs action)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, p := InitFrom(tc.run, tc.source)
			if got != tc.want || codeOf(p) != tc.reason {
				t.Errorf("InitFrom = %q, %q, want %q, %q", got, codeOf(p), tc.want, tc.reason)
			}
		})
	}
}

func TestInitFromNamesTheStepsOfAnEndedRun(t *testing.T) {
	run := newRun(func(r *v1alpha1.TrainingRun) {
		r.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "source", Step: new(int64(7))}}
	})
	ended := newRun()
	ended.UID = "source"
	ended.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}}
	saved := ended.DeepCopy()
	saved.Status.Checkpoints = []v1alpha1.Checkpoint{{Step: 30}, {Step: 29}, {Step: 20}}
	for want, source := range map[string]*v1alpha1.TrainingRun{
		`TrainingRun "source" has ended without a checkpoint`:                             ended,
		`TrainingRun "source" has ended, and its checkpoints are of the steps 30, 29, 20`: saved,
	} {
		if _, p := InitFrom(run, source); p == nil || p.Evidence != want {
			t.Errorf("InitFrom reports %+v, want %q", p, want)
		}
	}
}

func TestFileProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want problem.Problem
	}{
		"a spec that is not accepted": {
			&desired.SpecError{Problem: problem.Problem{Code: problem.SplitNotFound, Evidence: "it has train"}},
			problem.Problem{Code: problem.SplitNotFound, Evidence: "it has train"}},
		"another error": {errors.New("x"), problem.Problem{Code: problem.RunFileInvalid, Evidence: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := FileProblem(tc.err)
			if diff := cmp.Diff(&tc.want, got); diff != "" || !got.NeedsAction() {
				t.Errorf("FileProblem (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddedServerOnATakenPort adds an environment to the evaluation of a started run. Its server has the port of the
// training environment's server, which is the default, or another port.
func TestAddedServerOnATakenPort(t *testing.T) {
	server := func(name string, port int32) *v1alpha1.RewardEnvironment {
		env := readyEnvironment()
		env.Name = name
		env.Spec = v1alpha1.RewardEnvironmentSpec{ORS: &v1alpha1.ORSEnvironment{Server: &v1alpha1.ORSServer{
			ServerImage: environment.ServerImage{Image: name + ":v1", Port: port}}}}
		admit.Default(env)
		return env
	}
	run := newRun(func(r *v1alpha1.TrainingRun) {
		r.Status.StartTime = new(metav1.Now())
		r.Status.Environments = []v1alpha1.EnvironmentStatus{{Name: "env", Digest: "pinned"}}
		r.Spec.Evaluation = &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{
			{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "heldout"}}}}
	})
	pinned := desired.Pins{"env": {Digest: "pinned", Definition: desired.Definition(server("env", 0).Spec)}}
	for name, tc := range map[string]struct {
		port int32
		want string
	}{
		"the same port": {0, `RewardEnvironments "env" and "heldout" both serve on port 8080`},
		"another port":  {8090, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := Environments(run, pinned, map[string]*v1alpha1.RewardEnvironment{"heldout": server("heldout",
				tc.port)})
			if (found == nil) != (tc.want == "") {
				t.Fatalf("problem = %+v, want %q", found, tc.want)
			}
			if found == nil {
				return
			}
			for _, words := range []string{tc.want, "the run keeps the ports of env",
				"remove one from evaluation.environments"} {
				if !strings.Contains(found.Message(), words) || !found.NeedsAction() {
					t.Errorf("problem = %+v, want one that needs action and says %q", found, words)
				}
			}
		})
	}
}
