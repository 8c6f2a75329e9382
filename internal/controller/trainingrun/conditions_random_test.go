// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// TestStatusOfRandomObservations checks that the status is complete after any observation, and that a second
// reconciliation of the same observation changes nothing.
func TestStatusOfRandomObservations(t *testing.T) {
	reasons := closedReasons(t)
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		run := randomRun(t, random)
		seen := randomObserved(random, run)
		p := planned(run, seen)
		first := computeStatus(run, seen, p, now)
		if err := check(first, reasons, run.Generation); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if p.start > 0 || p.ending != nil || p.final != nil {
			continue // These change the next observation.
		}
		again := run.DeepCopy()
		again.Status = *first.DeepCopy()
		second := computeStatus(again, seen, planned(again, seen), now.Add(time.Second))
		if due, _ := record.Due(&first, &second, time.Time{}, now, record.PaceFor(run, time.Time{}, now)); due {
			t.Fatalf("seed %d: a second look changes the status (-first +second):\n%s", seed, cmp.Diff(first, second))
		}
	}
}

func randomRun(t *testing.T, random *rand.Rand) *v1alpha1.TrainingRun {
	t.Helper()
	run := newRun()
	if random.IntN(3) == 0 {
		suspend(run)
	}
	run.Spec.Rollouts.Workers = new(int32(random.IntN(3)))
	if random.IntN(4) == 0 {
		run.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "other"}}
	}
	causes := []contract.Cause{contract.CauseCrashed, contract.CauseNodeLost, contract.CauseDrained,
		contract.CauseUpstream, contract.CauseStalled}
	number := int32(random.IntN(4))
	for n := int32(1); n <= number; n++ {
		a := endedAttempt(n, causes[random.IntN(len(causes))], int64(n), int64(n)+random.Int64N(2),
			time.Duration(random.IntN(30))*time.Second)
		if n == number && random.IntN(3) > 0 {
			a = inProgress(n)
		}
		run.Status.Attempts = append([]v1alpha1.Attempt{a}, run.Status.Attempts...)
		run.Status.StartTime = ago(time.Hour)
	}
	switch random.IntN(8) {
	case 0:
		conditionIs(v1alpha1.ConditionComplete, "True", time.Minute)(run)
		run.Status.Conditions[0].Reason, run.Status.Conditions[0].Message = v1alpha1.ReasonCompleted, "m"
		run.Status.CompletionTime = ago(time.Minute)
	case 1:
		conditionIs(v1alpha1.ConditionFailed, "True", time.Minute)(run)
		run.Status.Conditions[0].Reason, run.Status.Conditions[0].Message = v1alpha1.ReasonRestartsExhausted, "m"
	}
	return run
}

func randomObserved(random *rand.Rand, run *v1alpha1.TrainingRun) observe.State {
	pods := []*corev1.Pod{
		nil, newPod(), newPod(pending), newPod(exited(1, "Error", "")), newPod(exited(0, "Completed", "")),
		newPod(deleted(-time.Minute)),
		newPod(waitingFor("ImagePullBackOff", "x")), newPod(waitingFor("CreateContainerConfigError", "odd")),
		newPod(waitingFor("CreateContainerError", "x")),
		newPod(exited(75, "Error", `{"cause":"Drained","attempt":1}`)),
		newPod(exited(0, "", `{"cause":"Completed","attempt":1}`)),
	}
	phases := []contract.Phase{contract.PhaseOpening, contract.PhaseTraining, contract.PhaseEvaluating,
		contract.PhaseDraining, contract.PhaseDone, "Odd"}
	codes := []problem.Code{"", "", problem.Throttled, problem.PaymentRequired, problem.EndpointUnreachable, "Odd"}
	seen := observing(status.NewestAttempt(run), observe.Learner{Pod: pods[random.IntN(len(pods))]})
	if random.IntN(2) == 0 {
		l := seen.Learners[status.NewestAttempt(run)]
		l.Job = newJob("newest")
		seen.Learners[status.NewestAttempt(run)] = l
	}
	if random.IntN(3) == 0 {
		seen.Rollout = nil
	}
	if random.IntN(5) == 0 {
		seen.Environments = nil
	}
	reply := contract.HeartbeatReply{
		Attempt:              status.NewestAttempt(run),
		SecondsSinceProgress: float64(random.IntN(5000)),
		Progress: contract.Progress{Phase: phases[random.IntN(len(phases))], Step: 5,
			Diverged: random.IntN(5) == 0, WorkersSeen: random.IntN(2)},
	}
	if code := codes[random.IntN(len(codes))]; code != "" {
		reply.Problems = []problem.Problem{{Code: code}}
	}
	switch random.IntN(3) {
	case 0:
		replying(reply)(&seen)
	case 1:
		repliedLongAgo(reply)(&seen)
	}
	return seen
}
