// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

func sorted(less func(a, b string) bool) cmp.Option { return cmpopts.SortSlices(less) }

func keyOf(run *v1alpha1.TrainingRun) types.NamespacedName { return client.ObjectKeyFromObject(run) }

// reasonOf gives a problem's reason and whether it needs a person.
func reasonOf(p *problem) string {
	switch {
	case p == nil:
		return ""
	case p.needsAction:
		return p.reason + " (person)"
	default:
		return p.reason
	}
}

func TestResolveEnvironments(t *testing.T) {
	started := func(digest string) *v1alpha1.TrainingRun {
		return newRun(attempts(inProgress(1)), func(r *v1alpha1.TrainingRun) {
			r.Status.Environments = []v1alpha1.EnvironmentStatus{{Name: "env", Digest: digest}}
		})
	}
	changed := func(by func(*v1alpha1.RewardEnvironment)) observed {
		env := readyEnvironment()
		by(env)
		return observing(0, learner{}, func(o *observed) { o.environments = map[string]*v1alpha1.RewardEnvironment{"env": env} })
	}
	own := desired.Pins{"env": {Digest: "pinned"}}
	cases := map[string]struct {
		run    *v1alpha1.TrainingRun
		pinned desired.Pins
		seen   observed
		want   string // digest that is pinned
		reason string
	}{
		"what is ready is pinned":          {newRun(), nil, observing(0, learner{}), "digest", ""},
		"what is pinned stays":             {started("pinned"), own, observing(0, learner{}), "pinned", ""},
		"even if the object is gone":       {started("pinned"), own, observing(0, learner{}, func(o *observed) { o.environments = nil }), "pinned", ""},
		"a missing one":                    {newRun(), nil, observing(0, learner{}, func(o *observed) { o.environments = nil }), "", "EnvironmentNotFound (person)"},
		"one that was never probed":        {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) { e.Status = v1alpha1.RewardEnvironmentStatus{} }), "", "EnvironmentNotReady"},
		"one that changed since its probe": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) { e.Generation = 2 }), "", "EnvironmentNotReady"},
		"one that is down": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) {
			e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason = "False", "Unavailable"
		}), "", "EnvironmentNotReady"},
		"one that cannot work": {newRun(), nil, changed(func(e *v1alpha1.RewardEnvironment) {
			e.Status.Conditions[0].Status, e.Status.Conditions[0].Reason = "False", "Invalid"
		}), "", "EnvironmentNotReady (person)"},
		"files lost, environment unchanged":  {started("digest"), nil, observing(0, learner{}), "digest", ""},
		"files lost, environment is another": {started("other"), nil, observing(0, learner{}), "digest", "EnvironmentChanged (person)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pins, p := resolveEnvironments(tc.run, tc.pinned, tc.seen)
			if got := reasonOf(p); got != tc.reason || pins["env"].Digest != tc.want {
				t.Errorf("resolveEnvironments = %q, %q, want %q, %q", pins["env"].Digest, got, tc.want, tc.reason)
			}
		})
	}
}

func TestResolveInitFrom(t *testing.T) {
	from := func(step *int64) *v1alpha1.TrainingRun {
		return newRun(func(r *v1alpha1.TrainingRun) {
			r.Spec.InitFrom = &v1alpha1.InitFrom{Run: &v1alpha1.RunCheckpoint{Name: "source", Step: step}}
		})
	}
	source := func(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
		run := newRun(changes...)
		run.UID = "source"
		run.Status.LatestCheckpoint = &v1alpha1.Checkpoint{Step: 30, State: "state30", Sampler: "sampler30"}
		run.Status.BestCheckpoint = &v1alpha1.Checkpoint{Step: 20, State: "state20"}
		run.Status.Checkpoints = []v1alpha1.Checkpoint{{Step: 30, State: "state30"}, {Step: 29, State: "state29"}}
		return run
	}
	evaluates := from(nil)
	evaluates.Spec.Algorithm = nil
	complete := source(conditionIs(v1alpha1.ConditionComplete, "True", 0))
	empty := source()
	empty.Status = v1alpha1.TrainingRunStatus{}
	itself := from(nil)
	cases := map[string]struct {
		run, source *v1alpha1.TrainingRun
		want        string
		reason      string
	}{
		"none":                            {newRun(), nil, "", ""},
		"a checkpoint is itself":          {newRun(func(r *v1alpha1.TrainingRun) { r.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "path"} }), nil, "path", ""},
		"the newest":                      {from(nil), source(), "state30", ""},
		"the newest sampler, to evaluate": {evaluates, source(), "sampler30", ""},
		"a step of the window":            {from(new(int64(29))), source(), "state29", ""},
		"the best":                        {from(new(int64(20))), source(), "state20", ""},
		"a step yet to come":              {from(new(int64(40))), source(), "", "InitFromNotReady"},
		"a step that will not come":       {from(new(int64(40))), complete, "", "InitFromNotFound (person)"},
		"a run that has saved nothing":    {from(nil), empty, "", "InitFromNotReady"},
		"a run that does not exist":       {from(nil), nil, "", "InitFromNotFound (person)"},
		"itself":                          {itself, itself, "", "InitFromNotFound (person)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, p := resolveInitFrom(tc.run, tc.source)
			if got != tc.want || reasonOf(p) != tc.reason {
				t.Errorf("resolveInitFrom = %q, %q, want %q, %q", got, reasonOf(p), tc.want, tc.reason)
			}
		})
	}
}

func TestFileProblem(t *testing.T) {
	if p := fileProblem(&desired.SplitError{Environment: "e", Split: "s"}); p.condition != "EnvironmentsReady" || p.reason != "SplitNotFound" {
		t.Errorf("fileProblem = %+v", p)
	}
	if p := fileProblem(errors.New("x")); p.condition != "Accepted" || p.reason != "RunFileInvalid" {
		t.Errorf("fileProblem = %+v", p)
	}
}

func TestTargets(t *testing.T) {
	run := newRun(attempts(inProgress(2)))
	seen := observing(2, learner{newJob("two"), newPod()}, func(o *observed) {
		o.learners[1] = learner{pod: newPod(func(p *corev1.Pod) { p.UID, p.Status.PodIP = "old", "fd00::1" })}
		o.learners[3] = learner{pod: newPod(pending)}
	})
	got := targets(run, seen, contract.DesiredDrain)
	if len(got) != 2 || got[0].Address != "[fd00::1]:7444" || got[1].Address != "10.0.0.1:7444" {
		t.Fatalf("targets = %+v", got)
	}
	for _, target := range got {
		if target.Request != (contract.HeartbeatRequest{RunUID: "0123456789", Attempt: 2, Desired: contract.DesiredDrain}) {
			t.Errorf("request = %+v", target.Request)
		}
	}
}
