// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// allConditions lists the conditions that every status has.
var allConditions = []string{
	"Accepted", "PodsReady", "Progressing", "Suspended",
	"Complete", "Failed", "Ready", "Stalled",
}

// closedReasons reads the reasons that the API declares.
func closedReasons(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../../api/v1alpha1/*_conditions.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the API's reasons: %v, %v", files, err)
	}
	reasons := map[string]bool{}
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				reasons[value] = true
			}
			return true
		})
	}
	return reasons
}

// check checks the rules that hold for every status.
func check(s v1alpha1.TrainingRunStatus, reasons map[string]bool, generation int64) error {
	if len(s.Conditions) != len(allConditions) {
		return fmt.Errorf("%d conditions, want %d", len(s.Conditions), len(allConditions))
	}
	for _, kind := range allConditions {
		c := meta.FindStatusCondition(s.Conditions, kind)
		switch {
		case c == nil:
			return fmt.Errorf("no condition %s", kind)
		case !reasons[c.Reason]:
			return fmt.Errorf("%s has the reason %q, which is not declared", kind, c.Reason)
		case c.Message == "" || strings.ContainsAny(c.Message, "\n\r\t"):
			return fmt.Errorf("%s says %q", kind, c.Message)
		case c.ObservedGeneration != generation:
			return fmt.Errorf("%s is of generation %d", kind, c.ObservedGeneration)
		}
	}
	is := func(kind string) bool { return meta.IsStatusConditionTrue(s.Conditions, kind) }
	switch {
	case is("Complete") && is("Failed"):
		return fmt.Errorf("complete and failed")
	case is("Ready") && is("Stalled"):
		return fmt.Errorf("ready and stalled")
	case is("Failed") != (s.State == v1alpha1.StateFailed) || is("Complete") != (s.State == v1alpha1.StateSucceeded):
		return fmt.Errorf("state %s contradicts the conditions", s.State)
	case (is("Complete") || is("Failed")) && (is("Progressing") || is("PodsReady") || is("Suspended")):
		return fmt.Errorf("over, but in progress")
	case is("Failed") && !is("Stalled"), is("Complete") && !is("Ready"), is("Suspended") && !is("Ready"):
		return fmt.Errorf("the summary does not follow")
	case s.State == "":
		return fmt.Errorf("no state")
	}
	return nil
}

// planned returns the plan, with the file and pins that prepare would have made for a start.
func planned(run *v1alpha1.TrainingRun, seen observe.State) plan {
	p := makePlan(run, seen, now)
	if p.start == 0 {
		return p
	}
	pins, blocked := resolve.Environments(run, nil, seen.Environments)
	path := ""
	if blocked == nil {
		path, blocked = resolve.InitFrom(run, seen.Source)
	}
	if blocked != nil {
		return p.withBlock(blocked, 0)
	}
	p.file = &contract.RunFile{Fixed: contract.Fixed{
		Algorithm: &algorithm.Algorithm{Steps: 60}, InitFrom: &contract.InitFrom{Checkpoint: path},
		Environments: []contract.Environment{{Name: "env", Digest: pins["env"].Digest,
			Splits: []contract.Split{{Name: "train", Tasks: 900}}}},
	}}
	p.pins = pins
	return p
}

func TestComputeStatus(t *testing.T) {
	running := observe.Learner{Job: newJob("one"), Pod: newPod()}
	reply := func(phase contract.Phase) contract.HeartbeatReply {
		return contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: phase, Step: 5, Steps: 60,
			Lineage: "abc", WorkersSeen: 2}}
	}
	ended := func(reason problem.Code, cause contract.Cause) observe.Learner {
		return observe.Learner{Job: newJob("one"), Pod: newPod(exited(int32(cause.ExitCode()), "Error",
			verdictText(t, contract.Verdict{Cause: cause, Reason: reason, Message: "It does not.", Attempt: 1})))}
	}
	finding := func(ignored ...string) contract.HeartbeatReply {
		r := reply(contract.PhaseTraining)
		r.Progress.Checkpoints = []contract.Checkpoint{{Step: 5, State: "tinker://m/weights/5"}}
		r.Progress.Capabilities = &contract.Capabilities{BaseURL: "http://tinkersim", Model: "m", Supported: []string{"ttl"},
			Ignored: ignored}
		return r
	}
	saved := func(r *v1alpha1.TrainingRun) {
		r.Status.LatestCheckpoint = "5"
		r.Status.Checkpoints = []v1alpha1.Checkpoint{{Name: "5", Step: 5, State: "tinker://m/weights/5"}}
	}
	cold := reply(contract.PhaseTraining)
	cold.Progress.ColdOptimizer = true
	diverged := reply(contract.PhaseTraining)
	diverged.Progress.Diverged = true
	reporting := func(code problem.Code) contract.HeartbeatReply {
		r := reply(contract.PhaseTraining)
		r.Problems = []problem.Problem{{Code: code}}
		return r
	}
	noEnvironment := func(o *observe.State) { o.Environments = nil }
	cases := map[string]struct {
		run   *v1alpha1.TrainingRun
		seen  observe.State
		state string
		want  map[string]string // condition: status and reason
	}{
		"a run that starts": {newRun(), observing(0, observe.Learner{}, func(o *observe.State) { o.Rollout = nil }),
			"Preparing", map[string]string{
				"Accepted": "True Accepted", "PodsReady": "False Starting",
				"Progressing": "False WaitingForLearner",
				"Suspended":   "False AsExpected", "Complete": "False AsExpected", "Failed": "False AsExpected",
				"Ready": "False WaitingForLearner", "Stalled": "False AsExpected",
			}},
		"an environment that is missing": {newRun(), observing(0, observe.Learner{}, noEnvironment), "Pending",
			map[string]string{
				"Accepted": "False EnvironmentNotUsable", "PodsReady": "False NotStarted",
				"Progressing": "False EnvironmentNotUsable",
				"Ready":       "False EnvironmentNotUsable", "Stalled": "True EnvironmentNotUsable",
			}},
		"a run suspended before its start": {newRun(suspend), observing(0, observe.Learner{}, noEnvironment,
			func(o *observe.State) { o.Rollout = nil }), "Suspended", map[string]string{
			"Accepted": "False EnvironmentNotUsable", "Suspended": "True Suspended", "Ready": "True Suspended",
			"Stalled":     "False AsExpected",
			"Progressing": "False Suspended", "PodsReady": "False Suspended",
		}},
		"a learner that opens": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(reply(contract.PhaseOpening))), "Preparing", map[string]string{
				"PodsReady": "True Running", "Progressing": "True Progressing", "Ready": "True Progressing",
			}},
		"a learner that trains": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(reply(contract.PhaseTraining))), "Training", map[string]string{
				"PodsReady": "True Running", "Progressing": "True Progressing", "Ready": "True Progressing",
			}},
		"a learner that evaluates": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(reply(contract.PhaseEvaluating))), "Evaluating", map[string]string{
				"Progressing": "True Progressing",
			}},
		"a learner without workers": {newRun(attempts(inProgress(1))), observing(1, running,
			replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining}}),
			func(o *observe.State) { o.Rollout.Status.Ready = nil }), "Training", map[string]string{
			"Progressing": "False WorkersMissing", "PodsReady": "False WorkersMissing", "Stalled": "False AsExpected",
		}},
		"a rate limit": {newRun(attempts(inProgress(1))), observing(1, running, replying(reporting(problem.Throttled))),
			"Training",
			map[string]string{
				"Progressing": "True EndpointBusy", "Stalled": "False AsExpected", "Ready": "True EndpointBusy",
			}},
		"a volume that is not writable": {newRun(attempts(inProgress(1))), observing(1, running, replying(blocked)),
			"Preparing", map[string]string{
				"Progressing": "False ArtifactsBlocked", "Stalled": "False AsExpected", "Ready": "False ArtifactsBlocked",
			}},
		"a volume that was not writable for two minutes": {newRun(attempts(inProgress(1)),
			conditionIs("Progressing", "False", 2*time.Minute)), observing(1, running, replying(blocked)), "Preparing",
			map[string]string{
				"Progressing": "False ArtifactsBlocked", "Stalled": "True ArtifactsBlocked", "Ready": "False ArtifactsBlocked",
			}},
		"a pod that is unschedulable for a moment": {newRun(attempts(inProgress(1))),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(pending, unschedulableFor(time.Minute))}), "Preparing",
			map[string]string{
				"PodsReady": "False Unschedulable", "Stalled": "False AsExpected",
			}},
		"a pod that stays unschedulable": {newRun(attempts(inProgress(1))),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(pending, unschedulableFor(2*time.Minute))}),
			"Preparing", map[string]string{
				"PodsReady": "False Unschedulable", "Stalled": "True Unschedulable", "Ready": "False Unschedulable",
			}},
		"an environment that is unavailable": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(unavailable(false))), "Training", map[string]string{
				"Accepted": "False EnvironmentNotUsable", "Progressing": "False EnvironmentNotUsable",
				"Stalled": "False AsExpected",
			}},
		"an environment that is skipped": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(unavailable(true))), "Training", map[string]string{
				"Accepted": "False EnvironmentNotUsable", "Progressing": "True Progressing", "Stalled": "False AsExpected",
			}},
		"a problem that a later learner reports": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(reporting("OfLater"))), "Training", map[string]string{
				"Progressing": "Unknown UnknownProblem", "Stalled": "False AsExpected", "Ready": "False UnknownProblem",
			}},
		"an unpaid bill": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(reporting(problem.PaymentRequired))), "Training",
			map[string]string{
				"Progressing": "False PaymentRequired", "Stalled": "False AsExpected", "Ready": "False PaymentRequired",
			}},
		"an unpaid bill for two minutes": {newRun(attempts(inProgress(1)), conditionIs(v1alpha1.ConditionProgressing, "False",
			2*time.Minute)), observing(1, running, replying(reporting(problem.PaymentRequired))), "Training", map[string]string{
			"Progressing": "False PaymentRequired", "Stalled": "True PaymentRequired",
		}},
		"a model that the endpoint does not offer": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(reporting(problem.ModelUnknown))), "Training", map[string]string{
				"Progressing": "False ModelUnknown", "Stalled": "False AsExpected", "Ready": "False ModelUnknown",
				"Failed": "False AsExpected",
			}},
		"a context that is too short for two minutes": {newRun(attempts(inProgress(1)),
			conditionIs(v1alpha1.ConditionProgressing, "False", 2*time.Minute)),
			observing(1, running, replying(reporting(problem.ContextTooShort))), "Training", map[string]string{
				"Progressing": "False UnsupportedByEndpoint", "Stalled": "True UnsupportedByEndpoint",
				"Ready": "False UnsupportedByEndpoint", "Failed": "False AsExpected",
			}},
		"a metric that is NaN": {newRun(attempts(inProgress(1))), observing(1, running, replying(diverged)), "Training",
			map[string]string{
				"Stalled": "True Diverged", "Ready": "False Diverged",
			}},
		"a learner that does not answer": {newRun(attempts(inProgress(1)),
			func(r *v1alpha1.TrainingRun) { r.Status.State = "Training" }),
			observing(1, running, repliedLongAgo(reply(contract.PhaseTraining))), "Training", map[string]string{
				"PodsReady": "Unknown Unreachable", "Progressing": "Unknown Unreachable", "Ready": "False Unreachable",
				"Stalled": "False AsExpected",
			}},
		"a learner that has just begun to run": {newRun(attempts(inProgress(1))),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Running.StartedAt = *ago(time.Second)
			})}), "Preparing", map[string]string{"PodsReady": "False Starting"}},
		"a Secret that is missing": {newRun(attempts(inProgress(1))),
			observing(1, observe.Learner{Job: newJob("one"),
				Pod: newPod(waitingFor("CreateContainerConfigError", `secret "tinker" not found`))}), "Preparing",
			map[string]string{
				"PodsReady": "False ObjectNotFound", "Progressing": "False ObjectNotFound", "Stalled": "False AsExpected",
				"Ready": "False ObjectNotFound",
			}},
		"a Secret that is missing for two minutes": {newRun(attempts(v1alpha1.Attempt{Number: 1,
			StartTime: ago(2 * time.Minute)})), observing(1,
			observe.Learner{Job: newJob("one"), Pod: newPod(waitingFor("CreateContainerConfigError",
				`secret "tinker" not found`))}), "Preparing", map[string]string{
			"PodsReady": "False ObjectNotFound", "Stalled": "True ObjectNotFound", "Ready": "False ObjectNotFound",
		}},
		"a Secret that is missing for the pods of two attempts": {newRun(attempts(inProgress(2), v1alpha1.Attempt{
			Number: 1, StartTime: ago(16 * time.Minute), CompletionTime: ago(time.Minute), Cause: "StartTimeout",
			Reason: "SecretNotFound", Message: "m",
		})), observing(2, observe.Learner{Job: newJob("two")}), "Recovering", map[string]string{
			"PodsReady": "False ObjectNotFound", "Progressing": "False ObjectNotFound", "Stalled": "True ObjectNotFound",
			"Ready": "False ObjectNotFound",
		}},
		"a back-off": {newRun(attempts(endedAttempt(2, contract.CauseCrashed, 5, 5, 0),
			endedAttempt(1, contract.CauseCrashed, 5, 5, time.Minute))), observing(0, observe.Learner{}), "Recovering",
			map[string]string{
				"PodsReady": "False Starting", "Progressing": "False BackingOff", "Ready": "False BackingOff",
			}},
		"a learner that takes over": {newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseNodeLost, 0, 5,
			time.Minute))), observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(pending)}), "Recovering",
			map[string]string{
				"PodsReady": "False Starting",
			}},
		"a learner after a suspension": {newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseDrained, 0, 5,
			time.Minute))), observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(pending)}), "Preparing", nil},
		"a drain": {newRun(attempts(inProgress(1)), suspend), observing(1, running, replying(reply(contract.PhaseDraining))),
			"Draining", map[string]string{
				"Suspended": "Unknown Draining", "Progressing": "False Draining", "Ready": "False Draining",
			}},
		"pods that are being deleted": {newRun(attempts(endedAttempt(1, contract.CauseDrained, 0, 5, time.Minute)), suspend),
			observing(0, observe.Learner{}), "Draining", map[string]string{
				"Suspended": "Unknown Draining",
			}},
		"no workers wanted": {newRun(attempts(inProgress(1)),
			func(r *v1alpha1.TrainingRun) { r.Spec.Rollouts.Workers = new(int32(0)) }),
			observing(1, running, replying(reply(contract.PhaseTraining)),
				func(o *observe.State) { o.Rollout.Status.Ready = nil }), "Training", map[string]string{
				"PodsReady": "False WorkersMissing",
			}},
		"no usable checkpoint": {newRun(attempts(inProgress(1))),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(exited(64, "Error", verdictText(t, contract.Verdict{
				Cause: contract.CauseConfigRejected, Reason: "NoUsableCheckpoint", Message: "All have expired.", Attempt: 1,
			})))}), "Failed", map[string]string{
				"Failed": "True NoUsableCheckpoint", "Stalled": "True NoUsableCheckpoint",
				"Ready":    "False NoUsableCheckpoint",
				"Complete": "False AsExpected", "Suspended": "False Finished", "PodsReady": "False Finished",
			}},
		"a setting that the endpoint ignores": {newRun(attempts(inProgress(1))),
			observing(1, ended("UnsupportedByEndpoint", contract.CauseConfigRejected)), "Failed", map[string]string{
				"Accepted": "False UnsupportedByEndpoint", "Failed": "True UnsupportedByEndpoint",
				"Stalled": "True UnsupportedByEndpoint",
			}},
		"an endpoint that forgets the optimizer, which is required": {newRun(attempts(inProgress(1))),
			observing(1, ended("OptimizerNotRestored", contract.CauseConfigRejected)), "Failed", map[string]string{
				"Accepted": "False UnsupportedByEndpoint", "Failed": "True UnsupportedByEndpoint",
			}},
		"an endpoint that forgets the optimizer, which is not required": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(finding("optimizer_restore"))), "Training", map[string]string{
				"Accepted": "True Accepted", "Ready": "True Progressing",
			}},
		"an endpoint that ignores seeds, which is shown": {newRun(attempts(inProgress(1))),
			observing(1, running, replying(finding("seed"))), "Training", map[string]string{
				"Accepted": "True Accepted",
			}},
		"an endpoint that supports everything": {newRun(attempts(inProgress(1))), observing(1, running, replying(finding())),
			"Training", map[string]string{
				"Accepted": "True Accepted",
			}},
		"states that have lost the optimizer": {newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 0, 5,
			time.Minute)), saved),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(exited(65, "Error", verdictText(t, contract.Verdict{
				Cause: contract.CauseDataRejected, Reason: "OptimizerNotRestored", Message: "All are cold.", Attempt: 2,
			})))}), "Failed", map[string]string{
				"Accepted": "True Accepted", "Failed": "True UnsupportedByEndpoint",
			}},
		"states that have lost the optimizer, which the run waits for": {newRun(attempts(inProgress(2),
			endedAttempt(1, contract.CauseCrashed, 0, 5, time.Minute)), saved),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(exited(75, "Error", verdictText(t, contract.Verdict{
				Cause: contract.CauseUpstream, Reason: "OptimizerNotRestored", Message: "All are cold.", Attempt: 2,
			})))}), "Recovering", map[string]string{
				"Accepted": "True Accepted", "Failed": "False AsExpected",
				"Ready": "False UnsupportedByEndpoint",
			}},
		"an attempt that began anew with Adam": {newRun(attempts(inProgress(1)), saved),
			observing(1, running, replying(cold)), "Training", map[string]string{
				"Accepted": "True Accepted",
			}},
	}
	reasons := closedReasons(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planned(tc.run, tc.seen)
			got := computeStatus(tc.run, tc.seen, p, now)
			if err := check(got, reasons, 3); err != nil {
				t.Error(err)
			}
			if got.State != tc.state {
				t.Errorf("state = %s, want %s", got.State, tc.state)
			}
			for kind, want := range tc.want {
				c := meta.FindStatusCondition(got.Conditions, kind)
				if have := string(c.Status) + " " + c.Reason; have != want {
					t.Errorf("%s = %s (%s), want %s", kind, have, c.Message, want)
				}
			}
		})
	}
}

func TestProgressAcrossAttempts(t *testing.T) {
	at := func(step, from int64) contract.Progress {
		return contract.Progress{Phase: contract.PhaseTraining, Step: step, FromStep: from, Lineage: "a",
			Checkpoints: []contract.Checkpoint{{Step: step, State: "s"}}}
	}
	run := newRun(attempts(inProgress(2), v1alpha1.Attempt{Number: 1, Cause: "Crashed", CompletionTime: ago(time.Minute),
		ToStep: new(int64(7))}))
	run.Status.FailuresSinceCheckpoint = new(int32(2))
	run.Status.LatestCheckpoint, run.Status.Checkpoints = "9", []v1alpha1.Checkpoint{{Name: "9", Step: 9}}
	l := observe.Learner{Job: newJob("two"), Pod: newPod()}

	opened := withHeartbeat(run, observing(2, l, replying(contract.HeartbeatReply{Attempt: 2, Progress: at(9, 9)})), now)
	if *opened.FailuresSinceCheckpoint != 2 {
		t.Errorf("an opening state refilled the budget: got %v, want 2", *opened.FailuresSinceCheckpoint)
	}
	if *opened.Attempts[1].ToStep != 9 {
		t.Errorf("attempt 1 got to step %d, want 9, where its successor began", *opened.Attempts[1].ToStep)
	}
	run.Status = opened
	next := withHeartbeat(run, observing(2, l, replying(contract.HeartbeatReply{Attempt: 2, Progress: at(10, 9)})), now)
	if *next.FailuresSinceCheckpoint != 0 || *next.Attempts[0].FromStep != 9 || *next.Attempts[0].ToStep != 10 {
		t.Errorf("after a step: failures %d, attempt %+v", *next.FailuresSinceCheckpoint, next.Attempts[0])
	}
	foreign := withHeartbeat(run, observing(2, l, replying(contract.HeartbeatReply{Attempt: 1, Progress: at(50, 0)})), now)
	if diff := cmp.Diff(run.Status, foreign); diff != "" {
		t.Errorf("another attempt's words changed the status:\n%s", diff)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	run := newRun(func(run *v1alpha1.TrainingRun) {
		run.Status.StartTime, run.Status.Restarts = ago(time.Hour), new(int32(14))
		for n := int32(15); n > 5; n-- {
			run.Status.Attempts = append(run.Status.Attempts, endedAttempt(n, contract.CauseNodeLost, int64(n), int64(n)+1,
				time.Hour))
		}
	})
	seen := observing(0, observe.Learner{})
	got := computeStatus(run, seen, planned(run, seen), now)
	if len(got.Attempts) != 10 || got.Attempts[0].Number != 16 || *got.Restarts != 15 {
		t.Errorf("%d attempts, the newest %d, %d restarts", len(got.Attempts), got.Attempts[0].Number, *got.Restarts)
	}
	if !got.StartTime.Equal(run.Status.StartTime) {
		t.Errorf("the start time is %v, want %v", got.StartTime, run.Status.StartTime)
	}
	if diff := cmp.Diff([]v1alpha1.EnvironmentStatus{{Name: "env", Digest: "digest", Tasks: new(int64(900))}},
		got.Environments); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
	if got.WorkerSelector != desired.WorkerSelector(run) {
		t.Errorf("selector = %s", got.WorkerSelector)
	}
}
