// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var start = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// newRun returns a run that trains.
func newRun(name string, changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "uid", CreationTimestamp: metav1.NewTime(start)},
		Spec:       v1alpha1.TrainingRunSpec{Model: v1alpha1.Model{Name: "tinkersim/byte-136k"}},
		Status: v1alpha1.TrainingRunStatus{
			State: v1alpha1.StateTraining, Step: new(int64(15)), Steps: new(int64(60)),
			Workers: new(int32(2)), ReadyWorkers: new(int32(2)),
			Metrics: []v1alpha1.MetricValue{{Name: contract.MetricReward, Value: 0.6484},
				{Name: contract.MetricPassAt1, Value: 0.6211}, {Name: contract.MetricStepSeconds, Value: 2},
				{Name: contract.MetricSampledTokensPerSecond, Value: 18240}},
			Usage: &v1alpha1.Usage{PromptTokens: new(int64(1234567)), SampledTokens: new(int64(45000)),
				TrainedTokens: new(int64(44000)), UnconfirmedTokens: new(int64(3200))},
		},
	}
	set(run, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonProgressing, "step 15 of 60 is committed")
	for _, change := range changes {
		change(run)
	}
	return run
}

func set(run *v1alpha1.TrainingRun, kind string, status metav1.ConditionStatus, reason, message string) {
	c := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(start)}
	for i := range run.Status.Conditions {
		if run.Status.Conditions[i].Type == kind {
			run.Status.Conditions[i] = c
			return
		}
	}
	run.Status.Conditions = append(run.Status.Conditions, c)
}

// rising returns a history whose reward rises.
func rising(steps int64) *history.History {
	h := &history.History{}
	for step := int64(1); step <= steps; step++ {
		h.Add("pod", []contract.Record{{
			Number: step, Step: step, Lineage: "a", Attempt: 1, Time: start.Unix() + step,
			Metrics: map[string]float64{contract.MetricReward: float64(step) / float64(steps),
				contract.MetricLoss: -float64(step)},
		}})
	}
	return h
}

func TestRunScreen(t *testing.T) {
	run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
		run.Status.LatestCheckpoint = "s"
		run.Status.Checkpoints = []v1alpha1.Checkpoint{{Name: "s", Step: 15}}
		set(run, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonProgressing, "")
	})
	got := runScreen(snapshot{at: start.Add(190 * time.Second), runs: []v1alpha1.TrainingRun{*run}, history: rising(15)},
		60)
	want := `arithmetic   Training   tinkersim/byte-136k   age 3m10s

step      █████░░░░░░░░░░░░░░░ 15/60   ETA 1m30s
workers   2 of 2 ready   restarts 0
pace      2 s a step   18.2k sampled tokens a second
tokens    1.23M prompt   45.0k sampled   44.0k trained   3.20k unconfirmed
newest    checkpoint of step 15

reward: 1 at step 15
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("the screen is (-want +got):\n%s", cmp.Diff(want, got))
	}
	if !strings.Contains(got, "╯") || !strings.Contains(got, "steps 1 to 15") {
		t.Errorf("the screen has no curve:\n%s", got)
	}
}

func TestSummaryOfWaitingRun(t *testing.T) {
	run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
		set(run, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonEndpointUnreachable,
			"no answer from\nhttp://tinkersim")
	})
	got := summarize(run, start).line()
	want := `arithmetic Training step=15/60 reward=0.6484 pass@1=0.6211 seconds=2 tok/s=18240 workers=2/2 restarts=0 ` +
		`waits-for="EndpointUnreachable: no answer from http://tinkersim"`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestOverview(t *testing.T) {
	var out bytes.Buffer
	now := snapshot{at: start.Add(time.Minute), runs: []v1alpha1.TrainingRun{*newRun("arithmetic"),
		{ObjectMeta: metav1.ObjectMeta{Name: "new"}}}}
	now.runs[1].CreationTimestamp = metav1.NewTime(start)
	now.runs[0].Status.Diagnoses = []v1alpha1.Diagnosis{{Cause: "Cut", Message: "It is cut."}, {Cause: "RepliesCut"}}
	if err := output.Print(cli.IO{Stdout: &out}, output.Table, overview(now)); err != nil {
		t.Fatal(err)
	}
	want := `NAME         STATE      PROGRESS       STEP    REWARD   PASS@1   S/STEP   TOK/S   WORKERS   RESTARTS   ETA     AGE   PROBLEM
arithmetic   Training   ███░░░░░░░░░   15/60   0.6484   0.6211   2        18.2k   2/2       0          1m30s   1m    Cut
new          New        ░░░░░░░░░░░░                                              0/0       0                  1m
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestOverviewOfAllNamespaces checks that the overview has a column for the namespace, and one for the cost of the
// runs.
func TestOverviewOfAllNamespaces(t *testing.T) {
	priced := newRun("arithmetic")
	priced.Namespace, priced.Status.Usage.EstimatedUSD = "team-a", new(1.25)
	now := snapshot{at: start.Add(time.Minute), allNamespaces: true, runs: []v1alpha1.TrainingRun{*priced,
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "arithmetic"}}}}
	result := overview(now)
	for column, want := range map[string][]string{"NAMESPACE": {"team-a", "team-b"}, "NAME": {"arithmetic", "arithmetic"},
		"USD": {"1.25", ""}} {
		at := slices.Index(result.Header, column)
		if at < 0 {
			t.Errorf("the table has the columns %v, want %s among them", result.Header, column)
			continue
		}
		if got := []string{result.Rows[0][at], result.Rows[1][at]}; !slices.Equal(got, want) {
			t.Errorf("the column %s is %q, want %q", column, got, want)
		}
	}
	if line := summarize(priced, start).in(now).line(); !strings.HasPrefix(line, "team-a/arithmetic Training") {
		t.Errorf("the line is %q, want the namespace at its beginning", line)
	}
}

func TestExplain(t *testing.T) {
	run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
		set(run, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, v1alpha1.ReasonObjectNotFound,
			`Secret "tinker" does not exist`)
		run.Status.Codes = []v1alpha1.ConditionCode{{Condition: v1alpha1.ConditionPodsReady, Code: "SecretNotFound"}}
		set(run, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonWaitingForLearner,
			"the learner has not started")
		run.Status.Attempts = []v1alpha1.Attempt{{Number: 2},
			{Number: 1, Cause: "NodeLost", Message: "node-1 does not answer"}}
	})
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "arithmetic-learner-2-x", UID: "pod"}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name:  "learner",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}},
	}}}
	event := func(note string, minute int, kind string) eventsv1.Event {
		return eventsv1.Event{
			Type: kind, Reason: "Failed", Note: note, EventTime: metav1.NewMicroTime(
				start.Add(time.Duration(minute) * time.Minute)),
			Regarding: corev1.ObjectReference{Name: pod.Name, UID: "pod"},
		}
	}
	other := event("another pod", 9, "Warning")
	other.Regarding.UID = "other"
	events := []eventsv1.Event{event("old", 1, "Warning"), event("new\x1b[31m", 2, "Warning"),
		event("normal", 3, "Normal"), other}
	var out bytes.Buffer
	if err := explain(run, []corev1.Pod{pod}, events, start.Add(5*time.Minute)).print(&out); err != nil {
		t.Fatal(err)
	}
	want := `arithmetic  Training  15/60

Reason:   ObjectNotFound (SecretNotFound)
          Secret "tinker" does not exist

Evidence:
  condition Progressing
      False, WaitingForLearner for 5m: the learner has not started
  condition PodsReady
      False, ObjectNotFound for 5m
  pod arithmetic-learner-2-x
      Pending, container learner waits: CreateContainerConfigError
  attempt 1
      ended with NodeLost: node-1 does not answer
  event of arithmetic-learner-2-x
      Failed: new�[31m
  event of arithmetic-learner-2-x
      Failed: old

What to do:
  Create the Secret, or correct the field of the spec that names it.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

func TestExplainLearning(t *testing.T) {
	run := newRun("arithmetic")
	run.Status.Diagnoses = []v1alpha1.Diagnosis{
		{Cause: string(diagnosis.RepliesCut), Message: "sampling.maxTokens cut 90% of the last replies\x1b[31m."},
		{Cause: "OfALaterVersion", Message: "Something is wrong."},
	}
	var out bytes.Buffer
	if err := explain(run, nil, nil, start).print(&out); err != nil {
		t.Fatal(err)
	}
	want := `
Why it does not learn:
  RepliesCut
      sampling.maxTokens cut 90% of the last replies�[31m.
      Raise sampling.maxTokens, or ask for shorter replies in the prompt. Read the replies: kubectl tinker
      transcripts arithmetic.
  OfALaterVersion
      Something is wrong.
`
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("the explanation is %q, want %q at its end", got, want)
	}
}

// TestExplainStepTime divides the time of a step of a run that makes progress.
func TestExplainStepTime(t *testing.T) {
	run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
		set(run, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonProgressing, "It trains.")
		run.Status.Metrics = []v1alpha1.MetricValue{{Name: contract.MetricStepSeconds, Value: 5},
			{Name: contract.MetricSamplingSeconds, Value: 4.9}, {Name: contract.MetricTrainingSeconds, Value: 0.0512}}
	})
	var out bytes.Buffer
	if err := explain(run, nil, nil, start).print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "\nStep:     5 s: 4.9 s sampling, 0.0512 s training\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the explanation is %q, want %q in it", out.String(), want)
	}
	set(run, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonEndpointUnreachable, "It waits.")
	if got := explain(run, nil, nil, start); got.StepTime != "" {
		t.Errorf("a run that waits has the step time %q, want none: nothing says that the next step is like it", got.StepTime)
	}
}

// TestExplainSaysEachThingOnce explains a run whose conditions, attempts and events all have one message, as in runs
// that wait because of their spec.
func TestExplainSaysEachThingOnce(t *testing.T) {
	const message = "A price is missing."
	run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
		set(run, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonSpecInvalid, message)
		set(run, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonSpecInvalid, message)
		set(run, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonSpecInvalid, message)
		set(run, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForLearner, "No learner runs.")
		run.Status.Attempts = []v1alpha1.Attempt{{Number: 1, Cause: "Upstream", Message: message},
			{Number: 2, Cause: "Upstream", Message: "It was another thing."}}
	})
	event := func(name, note string) eventsv1.Event {
		return eventsv1.Event{Type: corev1.EventTypeWarning, Reason: "Failed", Note: note,
			EventTime: metav1.NewMicroTime(start), Regarding: corev1.ObjectReference{Name: name, UID: run.UID}}
	}
	var out bytes.Buffer
	err := explain(run, nil, []eventsv1.Event{event("a", message), event("a", "The pull failed."),
		event("b", "The pull failed.")}, start.Add(time.Minute)).print(&out)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{message: 1, "The pull failed.": 1, "No learner runs.": 1,
		"It was another thing.": 1, "conditions Progressing, Accepted, Stalled": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%q is in the explanation %d times, want %d:\n%s", text, got, want, out.String())
		}
	}
}

// TestExplainEnvironment explains an environment whose server crashes, and one that the operator has not looked at.
func TestExplainEnvironment(t *testing.T) {
	environment := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Name: "sums", UID: "env"}}
	if got := explainEnvironment(environment, nil, nil, start); got.State != "New" || got.Reason != "NotObserved" {
		t.Errorf("explainEnvironment() = %s, %s without a status, want New, NotObserved", got.State, got.Reason)
	}
	const message = "Container environment-sums ended with exit code 1."
	environment.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonProbeFailed, Message: message, LastTransitionTime: metav1.NewTime(start)}}
	environment.Status.Codes = []v1alpha1.ConditionCode{{Condition: v1alpha1.ConditionReady,
		Code: string(problem.DataInvalid)}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "sums-probe", UID: "pod"}, Status: corev1.PodStatus{
		Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "environment-sums",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}}
	event := func(uid types.UID, note string) eventsv1.Event {
		return eventsv1.Event{Type: corev1.EventTypeWarning, Reason: "BackOff", Note: note,
			Regarding: corev1.ObjectReference{Name: "sums-probe", UID: uid}}
	}
	got := explainEnvironment(environment, []corev1.Pod{pod}, []eventsv1.Event{event("env", message),
		event("pod", "restarting failed container"), event("another", "of another object")}, start.Add(time.Minute))
	want := explanation{Environment: "sums", State: "NotReady", Reason: v1alpha1.ReasonProbeFailed,
		Code: string(problem.DataInvalid), Message: message, Repair: problem.AdviceOf(problem.DataInvalid),
		Learning: []learning{}, Evidence: []evidence{{"condition Ready", "False for 1m"},
			{"pod sums-probe", "Pending, container environment-sums waits: CrashLoopBackOff "},
			{"event of sums-probe", "BackOff: restarting failed container"}}}
	if diff := cmp.Diff(want, got); diff != "" || want.Repair == "" {
		t.Errorf("explainEnvironment() (-want +got):\n%s", diff)
	}
}

// TestWarningsOfReadyPods counts the warnings of a pod from before it became ready and from afterwards.
func TestWarningsOfReadyPods(t *testing.T) {
	ready := start.Add(2 * time.Minute)
	for name, tc := range map[string]struct {
		status corev1.ConditionStatus
		at     time.Duration
		want   int
	}{
		"before it was ready":              {corev1.ConditionTrue, -time.Minute, 0},
		"in the second in which it became": {corev1.ConditionTrue, 300 * time.Millisecond, 0},
		"after it was ready":               {corev1.ConditionTrue, time.Minute, 1},
		"of a pod that is not ready":       {corev1.ConditionFalse, -time.Minute, 1},
	} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "pod"},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: tc.status, LastTransitionTime: metav1.NewTime(ready)},
			}}}
		event := eventsv1.Event{
			Type: corev1.EventTypeWarning, Reason: "Unhealthy", EventTime: metav1.NewMicroTime(ready.Add(tc.at)),
			Regarding: corev1.ObjectReference{Name: "w", UID: "pod"},
		}
		about := func(e eventsv1.Event) bool { return isOf(e, []corev1.Pod{pod}) }
		if got := warnings(about, []corev1.Pod{pod}, []eventsv1.Event{event}); len(got) != tc.want {
			t.Errorf("%s: %d warnings, want %d", name, len(got), tc.want)
		}
	}
}

func TestDecisiveCondition(t *testing.T) {
	const no, yes, unknown = metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionUnknown
	cases := map[string]struct {
		kind   string
		status metav1.ConditionStatus
		reason string
		code   problem.Code
		want   string
	}{
		"a run that trains":      {v1alpha1.ConditionFailed, no, "X", "", v1alpha1.ReasonProgressing},
		"a run that failed":      {v1alpha1.ConditionFailed, yes, "X", "", "X"},
		"a run that is complete": {v1alpha1.ConditionComplete, yes, "X", "", "X"},
		"a run that is stalled":  {v1alpha1.ConditionStalled, yes, "X", "", "X"},
		"a run that drains":      {v1alpha1.ConditionSuspended, unknown, "X", "", "X"},
		"no workers needed":      {v1alpha1.ConditionPodsReady, no, "X", "", v1alpha1.ReasonProgressing},
		"workers that crash": {v1alpha1.ConditionPodsReady, no, v1alpha1.ReasonWorkersMissing,
			problem.WorkersCrashed, v1alpha1.ReasonWorkersMissing},
		"a run that trains with some of its workers": {v1alpha1.ConditionPodsReady, no, v1alpha1.ReasonWorkersMissing,
			problem.WorkersMissing, v1alpha1.ReasonProgressing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
				set(run, tc.kind, tc.status, tc.reason, "")
				if tc.code != "" {
					run.Status.Codes = []v1alpha1.ConditionCode{{Condition: tc.kind, Code: string(tc.code)}}
				}
			})
			if got := decisive(run).Reason; got != tc.want {
				t.Errorf("the reason is %s, want %s", got, tc.want)
			}
		})
	}
	if got := decisive(&v1alpha1.TrainingRun{}); got.Reason != "NotObserved" {
		t.Errorf("a run without a status has the reason %s", got.Reason)
	}
}

func TestCompareTabulates(t *testing.T) {
	first, second := newRun("one"), newRun("two", func(run *v1alpha1.TrainingRun) {
		if err := json.Unmarshal([]byte(`[{"name": "sums", "groupSize": 4}]`), &run.Spec.Environments); err != nil {
			t.Fatal(err)
		}
		run.Status.Restarts = new(int32(1))
	})
	result, err := tabulate([]compared{{run: *first, history: rising(4)}, {run: *second, history: &history.History{}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := output.Print(cli.IO{Stdout: &out}, output.Plain, result); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"state\tTraining\tTraining\n", "spec.environments[sums].groupSize\t\t4\n", "reward\t1\t\n", "best reward\t1 @4\t\n",
		"loss\t-4\t\n",
		"sampled tokens\t45.0k\t45.0k\n", "restarts\t0\t1\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the comparison lacks %q:\n%s", line, out.String())
		}
	}
	if strings.Contains(out.String(), "spec.model") {
		t.Errorf("the comparison has equal rows:\n%s", out.String())
	}
}

func TestResolveMetrics(t *testing.T) {
	h := rising(3)
	got, err := resolveMetrics(h, []string{"reward", "loss:sum"})
	if diff := cmp.Diff([]string{contract.MetricReward, contract.MetricLoss}, got); diff != "" || err != nil {
		t.Errorf("metrics, %v (-want +got):\n%s", err, diff)
	}
	for name, want := range map[string]string{"rewrd": "did you mean reward?",
		"nothing-like-it": "it has env/all/reward/total, loss:sum"} {
		if _, err := resolveMetrics(h, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("metric %s: %v, want %q", name, err, want)
		}
	}
}

func TestLogsChoosePods(t *testing.T) {
	pod := func(attempt int) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", attempt),
			Labels: map[string]string{v1alpha1.LabelAttempt: fmt.Sprint(attempt)}}}
	}
	pods := []corev1.Pod{pod(3), pod(2)}
	cases := map[string]struct {
		flags logsFlags
		pods  []corev1.Pod
		want  string
	}{
		"the newest attempt":       {logsFlags{role: "learner"}, pods, "p3"},
		"an attempt":               {logsFlags{role: "learner", attempt: 2}, pods, "p2"},
		"an attempt without a pod": {logsFlags{role: "learner", attempt: 1}, pods, "these attempts are left: 2 3"},
		"no learner":               {logsFlags{role: "learner"}, nil, "kubectl tinker why arithmetic"},
		"workers":                  {logsFlags{role: "rollout"}, pods, "p2 p3"},
		"no workers":               {logsFlags{role: "rollout"}, nil, "no workers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			chosen, err := tc.flags.choose(newRun("arithmetic"), tc.pods)
			got := fmt.Sprint(err)
			if err == nil {
				var names []string
				for _, p := range chosen {
					names = append(names, p.Name)
				}
				got = strings.Join(names, " ")
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("chosen are %q, want %q", got, tc.want)
			}
		})
	}
}
