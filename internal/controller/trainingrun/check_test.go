// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// checkedRun returns a run in progress, its observed state, a Reconciler whose API server has the run file of the
// first attempt, and the number of reads from that server.
func checkedRun(t *testing.T) (*v1alpha1.TrainingRun, observe.State, *Reconciler, *int) {
	t.Helper()
	run := newRun(attempts(inProgress(1)), func(r *v1alpha1.TrainingRun) {
		r.Status.Environments = []v1alpha1.EnvironmentStatus{{Name: "env", Digest: strings.Repeat("ab", 32)}}
		r.Status.SettingsFixed = new(true)
		r.Spec.Model.Renderer = &v1alpha1.Renderer{Name: "role_colon"}
		r.Spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: "own/model"}
	})
	seen := observing(1, observe.Learner{Job: newJob("learner"), Pod: newPod()}, replying(contract.HeartbeatReply{
		Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5, Steps: 60, Lineage: "abc",
			WorkersSeen: 2},
	}))
	seen.Environments["env"].Status.Digest = strings.Repeat("ab", 32)
	pins, problem := resolve.Environments(run, nil, seen.Environments)
	if problem != nil {
		t.Fatal(problem.Message())
	}
	file, err := desired.File(desired.FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: "http://tinkersim"})
	if err != nil {
		t.Fatal(err)
	}
	object, err := desired.RunFile(run, file, pins, desired.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reads := new(int)
	count := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		options ...client.GetOption) error {
		*reads++
		return c.Get(ctx, key, o, options...)
	}}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithInterceptorFuncs(count).Build()
	r := New(Reconciler{Client: kube, Live: kube, Settings: desired.Settings{DefaultBaseURL: "http://tinkersim"},
		Now: func() time.Time { return now }})
	return run, seen, r, reads
}

// conditionAfter computes the status of a run after a change of its spec, and returns one of its conditions.
func conditionAfter(t *testing.T, r *Reconciler, run *v1alpha1.TrainingRun, seen observe.State,
	kind string) metav1.Condition {
	t.Helper()
	p := makePlan(run, seen, now)
	if p.start != 0 {
		t.Fatalf("attempt %d starts", p.start)
	}
	p.unusable = r.checkNext(t.Context(), run, seen, p)
	next := computeStatus(run, seen, p, now)
	if c := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue {
		t.Errorf("Progressing is %s (%s), want True: the learner continues", c.Status, c.Reason)
	}
	return *meta.FindStatusCondition(next.Conditions, kind)
}

// TestUnusableChangeIsToldAtOnce changes fields that may be changed while a run trains, to values with which the next
// attempt could not start.
func TestUnusableChangeIsToldAtOnce(t *testing.T) {
	evaluate := func(use v1alpha1.EvaluationEnvironment) func(*v1alpha1.TrainingRun) {
		return func(r *v1alpha1.TrainingRun) {
			r.Spec.Evaluation = &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{use}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRun)
		kind   string
		code   problem.Code
	}{
		"dollars without a price": {func(r *v1alpha1.TrainingRun) { r.Spec.Budget = &v1alpha1.Budget{USD: new(10.0)} },
			v1alpha1.ConditionAccepted, problem.PriceUnknown},
		"a split that does not exist": {evaluate(v1alpha1.EvaluationEnvironment{
			EnvironmentUse: v1alpha1.EnvironmentUse{Name: "env"}, Splits: []v1alpha1.EvaluationSplit{{Name: "heldout"}},
		}), v1alpha1.ConditionAccepted, problem.SplitNotFound},
		"an environment that does not exist": {evaluate(v1alpha1.EvaluationEnvironment{
			EnvironmentUse: v1alpha1.EnvironmentUse{Name: "added"},
		}), v1alpha1.ConditionAccepted, problem.EnvironmentNotFound},
		"another reference of an entry": {evaluate(v1alpha1.EvaluationEnvironment{
			EnvironmentUse: v1alpha1.EnvironmentUse{Name: "env", EnvironmentRef: &v1alpha1.EnvironmentRef{Name: "misspelt"}},
		}), v1alpha1.ConditionAccepted, problem.EnvironmentNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			run, seen, r, _ := checkedRun(t)
			if c := conditionAfter(t, r, run, seen, tc.kind); c.Status != metav1.ConditionTrue {
				t.Fatalf("before the change: %s is %s (%s: %s)", tc.kind, c.Status, c.Reason, c.Message)
			}
			former := run.DeepCopy()
			tc.change(run)
			admit.Default(run)
			run.Generation++
			c := conditionAfter(t, r, run, seen, tc.kind)
			if c.Status != metav1.ConditionFalse || c.Reason != problem.Lookup(tc.code).Reason ||
				!strings.HasSuffix(c.Message, "The learner continues meanwhile. The next attempt needs the repair.") {
				t.Errorf("after the change: %s is %s (%s: %s), want False (%s)", tc.kind, c.Status, c.Reason, c.Message, tc.code)
			}
			former.Generation = run.Generation + 1
			if c := conditionAfter(t, r, former, seen, tc.kind); c.Status != metav1.ConditionTrue {
				t.Errorf("after it was taken back: %s is %s (%s: %s)", tc.kind, c.Status, c.Reason, c.Message)
			}
		})
	}
}

// TestRunIsCheckedOnce reads the run file once for each version of the next file's inputs, and not at each reconcile.
func TestRunIsCheckedOnce(t *testing.T) {
	run, seen, r, reads := checkedRun(t)
	check := func(when string, want int) {
		t.Helper()
		for range 3 {
			if p := r.checkNext(t.Context(), run, seen, makePlan(run, seen, now)); p != nil {
				t.Fatalf("%s: %s", when, p.Message())
			}
		}
		if *reads != want {
			t.Errorf("%s: %d reads, want %d", when, *reads, want)
		}
	}
	check("at first", 1)
	run.Generation++
	check("with another generation", 2)
	seen.Environments["env"].Status.Digest = strings.Repeat("cd", 32)
	check("with another environment", 3)
}
