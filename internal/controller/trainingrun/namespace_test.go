// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// namespaceReader reads one namespace, and counts how often.
type namespaceReader struct {
	client.Reader
	deleted *metav1.Time
	err     error
	reads   int
}

func (r *namespaceReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.reads++
	into.SetDeletionTimestamp(r.deleted)
	return r.err
}

// fullyStaffed makes both workers of the run active.
func fullyStaffed(seen *observe.State) { seen.Rollout.Status.Active = 2 }

// TestNamespaceBeingDeleted checks that the namespace is read if pods are missing, and that a run gives up its Jobs if
// the namespace is being deleted.
func TestNamespaceBeingDeleted(t *testing.T) {
	type result struct {
		Terminating bool
		Start       int32
		Workers     bool
		Deletes     []string
		Reads       int
	}
	training := replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining,
		Step: 5}})
	running := observe.Learner{Job: newJob("one"), Pod: newPod()}
	drained := observe.Learner{Job: newJob("one"), Pod: newPod(exited(75, "Error", ""), deleted(time.Second))}
	forbidden := apierrors.NewForbidden(corev1.Resource("namespaces"), "n", errors.New("no"))
	cases := map[string]struct {
		run    *v1alpha1.TrainingRun
		seen   observe.State
		reader namespaceReader
		want   result
	}{
		"a run with all its pods reads nothing": {
			newRun(attempts(inProgress(1))), observing(1, running, training, fullyStaffed), namespaceReader{deleted: ago(0)},
			result{Workers: true},
		},
		"a run that lacks workers": {
			newRun(attempts(inProgress(1))), observing(1, running, training), namespaceReader{deleted: ago(0)},
			result{Terminating: true, Deletes: []string{"rollout", "one"}, Reads: 1},
		},
		"a run whose learner has ended gets no attempt": {
			newRun(attempts(inProgress(1))), observing(1, drained, fullyStaffed), namespaceReader{deleted: ago(0)},
			result{Terminating: true, Deletes: []string{"rollout", "one"}, Reads: 1},
		},
		"a learner that is being deleted": {
			newRun(attempts(inProgress(1))), observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(deleted(time.Second))},
				training, fullyStaffed),
			namespaceReader{deleted: ago(0)},
			result{Terminating: true, Deletes: []string{"rollout", "one"}, Reads: 1},
		},
		"a namespace that stays": {
			newRun(attempts(inProgress(1))), observing(1, drained, fullyStaffed), namespaceReader{},
			result{Start: 2, Workers: true, Reads: 1},
		},
		"a namespace that the manager may not read": {
			newRun(attempts(inProgress(1))), observing(1, drained, fullyStaffed), namespaceReader{err: forbidden},
			result{Start: 2, Workers: true, Reads: 1},
		},
		"a refused create says it by itself": {
			newRun(attempts(inProgress(1))), observing(0, observe.Learner{}, fullyStaffed, func(seen *observe.State) {
				seen.Refused = refusal.Try{Problem: problem.Problem{Code: problem.NamespaceTerminating, Evidence: "w"}}
			}), namespaceReader{err: forbidden},
			result{Terminating: true, Deletes: []string{"rollout"}},
		},
		"workers that another controller suspended are not missing": {
			newRun(attempts(inProgress(1))), observing(1, running, training,
				func(seen *observe.State) { seen.Rollout.Spec.Suspend = new(true) }),
			namespaceReader{deleted: ago(0)}, result{Workers: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(Reconciler{Live: &tc.reader, Now: func() time.Time { return now }})
			p := r.withNamespace(t.Context(), tc.run, tc.seen, makePlan(tc.run, tc.seen, now))
			got := result{Terminating: p.terminating, Start: p.start, Workers: p.workers, Reads: tc.reader.reads}
			if p.terminating {
				got.Deletes = outcomeOf(p).Deletes
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespaceIsReadOnceInAWhile(t *testing.T) {
	reader := &namespaceReader{}
	known := &namespaces{}
	for _, step := range []struct {
		after     time.Duration
		now       bool
		wantReads int
		wantAgain time.Duration
	}{
		{0, false, 1, observe.LookInterval},
		{4 * time.Second, false, 1, observe.LookInterval - 4*time.Second},
		{4 * time.Second, true, 2, observe.LookInterval},
		{15 * time.Second, false, 3, observe.LookInterval},
	} {
		_, again := known.terminating(t.Context(), reader, "n", step.now, now.Add(step.after))
		if reader.reads != step.wantReads || again != step.wantAgain {
			t.Errorf("after %s: %d reads, again in %s, want %d and %s", step.after, reader.reads, again, step.wantReads,
				step.wantAgain)
		}
	}
	reader.deleted = ago(0)
	if is, _ := known.terminating(t.Context(), reader, "n", true, now.Add(16*time.Second)); !is {
		t.Error("a namespace with a deletion timestamp is not terminating")
	}
}

// TestNamespaceBeingDeletedStallsNothing checks the conditions of a run that has waited for long in a namespace that is
// being deleted.
func TestNamespaceBeingDeletedStallsNothing(t *testing.T) {
	refused := endedAttempt(1, contract.CauseRefused, 0, 0, time.Hour)
	refused.Reason = string(problem.CreateRefused)
	run := newRun(attempts(refused), conditionIs(v1alpha1.ConditionProgressing, metav1.ConditionFalse, time.Hour))
	seen := observing(0, observe.Learner{}, func(seen *observe.State) { seen.Rollout = &batchv1.Job{} })
	p := makePlan(run, seen, now).withoutNamespace(seen)
	next := computeStatus(run, seen, p, now)
	got := map[string]string{}
	for _, c := range next.Conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason
	}
	for kind, want := range map[string]string{
		v1alpha1.ConditionStalled:     "False AsExpected",
		v1alpha1.ConditionProgressing: "False NamespaceTerminating",
		v1alpha1.ConditionPodsReady:   "False NamespaceTerminating",
		v1alpha1.ConditionReady:       "False NamespaceTerminating",
	} {
		if got[kind] != want {
			t.Errorf("%s is %q, want %q", kind, got[kind], want)
		}
	}
	if len(next.Attempts) != 1 || status.RunFinished(run) {
		t.Errorf("%d attempts, want 1 of a run that is not over", len(next.Attempts))
	}
}
