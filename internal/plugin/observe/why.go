// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const whyHelp = `kubectl tinker why says in one screen what a run does or waits for: the reason, the evidence and
a repair. The evidence is in conditions, pods and the newest warnings. If the figures of the newest steps show why the
policy does not learn, it says that as well. Of a run that makes progress it says where the time of a step goes. With
renv/NAME it says whether the RewardEnvironment of that name is ready, or why not.

A run that kubectl apply has refused does not exist: kubectl tinker plan -f FILE says what is wrong with it, and which
fields may be meant.`

const whyExample = `  kubectl tinker why arithmetic
  kubectl tinker why renv/sums
  kubectl tinker why arithmetic -o json`

// unobserved is the state of a run that the operator has not looked at.
const unobserved = "New"

// explanation explains the state of a run or an environment.
type explanation struct {
	Run         string `json:"run,omitempty"`
	Environment string `json:"environment,omitempty"`
	State       string `json:"state"`
	Progress    string `json:"progress,omitempty"`
	Reason      string `json:"reason"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`
	Repair      string `json:"repair,omitempty"`
	// StepTime is the time of the newest step with its parts; empty while the run makes no progress.
	StepTime string     `json:"stepTime,omitempty"`
	Evidence []evidence `json:"evidence"`
	// Learning has the reasons why the policy does not learn, by the figures of its steps.
	Learning []learning `json:"learning"`
}

// learning is one reason why the policy does not learn.
type learning struct {
	Cause   string `json:"cause"`
	Message string `json:"message"`
	Repair  string `json:"repair,omitempty"`
}

func learningOf(run *v1alpha1.TrainingRun) []learning {
	list := []learning{}
	for _, d := range run.Status.Diagnoses {
		repair := diagnosis.RepairOf(diagnosis.Cause(d.Cause))
		list = append(list, learning{Cause: output.Safe(d.Cause), Message: output.Safe(d.Message),
			Repair: strings.ReplaceAll(repair, "RUN", run.Name)})
	}
	return list
}

// evidence is one observation.
type evidence struct {
	From string `json:"from"`
	Text string `json:"text"`
}

// NewWhy returns the command that explains the state of a run, or of an environment.
func NewWhy(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var format *output.Format
	command := &cobra.Command{
		Use: "why RUN | renv/ENVIRONMENT", Short: "Say why a run waits or does not learn, and what to do", Long: whyHelp,
		Example: whyExample, Args: cli.Args(1, 1, "the name of a RUN, or renv/ENVIRONMENT"),
		ValidArgsFunction: cluster.CompleteRuns(1),
		RunE: func(command *cobra.Command, args []string) error {
			connection, err := cluster.Connect()
			if err != nil {
				return err
			}
			return why(command.Context(), env, connection, args[0], *format)
		},
	}
	format = output.Flag(command.Flags())
	return command
}

// subject is a run or an environment whose state is explained.
type subject struct {
	object client.Object
	// selected are the labels of its pods.
	selected client.MatchingLabels
	explain  func(ctx context.Context, pods []corev1.Pod, events []eventsv1.Event, now time.Time) explanation
}

// subjectOf finds the run of a name, or the environment of renv/NAME.
func subjectOf(ctx context.Context, connection *cli.Connection, name string) (subject, error) {
	if kind, of, given := strings.Cut(name, "/"); given {
		environment, err := findEnvironment(ctx, connection, kind, of)
		if err != nil {
			return subject{}, err
		}
		return ofEnvironment(environment), nil
	}
	run, err := connection.Run(ctx, name)
	if err != nil {
		return subject{}, err
	}
	return ofRun(connection, run), nil
}

func ofEnvironment(environment *v1alpha1.RewardEnvironment) subject {
	return subject{
		object: environment,
		selected: client.MatchingLabels{v1alpha1.LabelEnvironment: environment.Name,
			v1alpha1.LabelEnvironmentUID: string(environment.UID)},
		explain: func(_ context.Context, pods []corev1.Pod, events []eventsv1.Event, now time.Time) explanation {
			return explainEnvironment(environment, pods, events, now)
		},
	}
}

func ofRun(connection *cli.Connection, run *v1alpha1.TrainingRun) subject {
	return subject{
		object:   run,
		selected: client.MatchingLabels{v1alpha1.LabelRun: run.Name, v1alpha1.LabelRunUID: string(run.UID)},
		explain: func(ctx context.Context, pods []corev1.Pod, events []eventsv1.Event, now time.Time) explanation {
			found := explain(run, pods, events, now)
			if found.Code == string(problem.EnvironmentNotFound) {
				near := connection.NearEnvironments(ctx, run.Namespace, desired.References(run))
				found.Repair = strings.TrimSpace(found.Repair + " " + output.Safe(near))
			}
			return found
		},
	}
}

func why(ctx context.Context, env cli.IO, connection *cli.Connection, name string, format output.Format) error {
	of, err := subjectOf(ctx, connection, name)
	if err != nil {
		return err
	}
	found := of.find(ctx, connection, env.Now())
	if format == output.JSON {
		return output.PrintJSON(env.Stdout, found)
	}
	return found.print(env.Stdout)
}

// find explains a subject by its pods and events. People who may read runs may lack the permission to read pods and
// events: the rest is worth showing without them.
func (of subject) find(ctx context.Context, connection *cli.Connection, now time.Time) explanation {
	var pods corev1.PodList
	noPods := connection.List(ctx, &pods, client.InNamespace(of.object.GetNamespace()), of.selected)
	var events eventsv1.EventList
	noEvents := connection.List(ctx, &events, client.InNamespace(of.object.GetNamespace()))
	found := of.explain(ctx, pods.Items, events.Items, now)
	for _, unread := range []struct {
		from string
		err  error
	}{{"pods", noPods}, {"events", noEvents}} {
		if unread.err != nil {
			found.Evidence = append(found.Evidence, evidence{From: unread.from,
				Text: output.Safe("cannot be read: " + unread.err.Error())})
		}
	}
	return found
}

// decisive returns the condition that explains the state of a run.
func decisive(run *v1alpha1.TrainingRun) metav1.Condition {
	find := func(kind string) *metav1.Condition { return meta.FindStatusCondition(run.Status.Conditions, kind) }
	for _, kind := range []string{v1alpha1.ConditionFailed, v1alpha1.ConditionComplete, v1alpha1.ConditionStalled} {
		if c := find(kind); c != nil && c.Status == metav1.ConditionTrue {
			return *c
		}
	}
	if c := find(v1alpha1.ConditionSuspended); c != nil && c.Status != metav1.ConditionFalse {
		return *c
	}
	for _, kind := range []string{
		v1alpha1.ConditionAccepted, v1alpha1.ConditionPodsReady,
	} {
		c := find(kind)
		if c == nil || c.Status == metav1.ConditionTrue || status.CodeOf(run.Status.Codes, kind) == "" {
			continue
		}
		if status.CodeOf(run.Status.Codes, kind) == problem.WorkersMissing && !waitsForWorkers(run) {
			continue
		}
		return *c
	}
	for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionReady} {
		if c := find(kind); c != nil {
			return *c
		}
	}
	return metav1.Condition{Reason: "NotObserved",
		Message: "The operator has not looked at the run yet: check that its manager runs."}
}

// waitsForWorkers reports whether a run that lacks workers waits for them: it may make progress with the workers that
// it has, or Progressing may have the reason why they are not ready.
func waitsForWorkers(run *v1alpha1.TrainingRun) bool {
	code := status.CodeOf(run.Status.Codes, v1alpha1.ConditionProgressing)
	return !meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionProgressing) &&
		(code == "" || code == problem.WorkersMissing)
}

// explain says why a run is in its state.
func explain(run *v1alpha1.TrainingRun, pods []corev1.Pod, events []eventsv1.Event, now time.Time) explanation {
	c := decisive(run)
	code := status.CodeOf(run.Status.Codes, c.Type)
	found := explanation{
		Run: run.Name, State: cmp.Or(run.Status.State, unobserved), Progress: status.Steps(&run.Status), Reason: c.Reason,
		Code: string(code), Message: output.Safe(c.Message),
		Repair: output.Safe(status.Advice(run, code)), Evidence: []evidence{},
		Learning: learningOf(run), StepTime: stepTime(run),
	}
	add := func(from, format string, args ...any) {
		found.Evidence = append(found.Evidence, evidence{From: from, Text: output.Safe(fmt.Sprintf(format, args...))})
	}
	said := map[string]bool{"": true, c.Message: true}
	// first reports whether a message has not been shown yet, and marks it as shown.
	first := func(message string) bool {
		before := said[message]
		said[message] = true
		return !before
	}
	found.Evidence = conditionsOf(run.Status.Conditions, isWrong, first, now)
	if len(run.Status.PendingChanges) > 0 {
		add("pending changes", "%s: suspend and resume the run to have them at once",
			strings.Join(run.Status.PendingChanges, ", "))
	}
	for _, e := range run.Status.Environments {
		if ptr.Deref(e.Outdated, false) {
			add("environment "+e.Name, "its RewardEnvironment has another spec than the run began with, and the run keeps its "+
				"own: kubectl tinker fork %s makes a run with the new one", run.Name)
		}
		if e.Fault != "" {
			add("newest fault of environment "+e.Name, "%s", e.Fault)
		}
	}
	for _, pod := range pods {
		if text := podProblem(pod); text != "" {
			add("pod "+pod.Name, "%s", text)
		}
	}
	for _, a := range run.Status.Attempts[:min(3, len(run.Status.Attempts))] {
		if a.Cause != "" && a.Cause != string(contract.CauseCompleted) && first(a.Message) {
			add(fmt.Sprintf("attempt %d", a.Number), "ended with %s: %s", strings.Trim(a.Cause+" "+a.Reason, " "), a.Message)
		}
	}
	about := func(event eventsv1.Event) bool {
		return c.Type != v1alpha1.ConditionComplete && (event.Regarding.UID == run.UID || isOf(event, pods))
	}
	for _, event := range warnings(about, pods, events) {
		if first(event.Note) {
			add("event of "+event.Regarding.Name, "%s: %s", event.Reason, event.Note)
		}
	}
	return found
}

// conditionsOf returns the failing conditions as evidence. Conditions with the same message are combined, and a message
// that was printed before is left out.
func conditionsOf(conditions []metav1.Condition, wrong func(metav1.Condition) bool, first func(string) bool,
	now time.Time) []evidence {
	found := []evidence{}
	for i, c := range conditions {
		same := func(other metav1.Condition) bool { return wrong(other) && other.Message == c.Message }
		if !wrong(c) || c.Message != "" && slices.ContainsFunc(conditions[:i], same) {
			continue
		}
		types := []string{c.Type}
		for _, other := range conditions[i+1:] {
			if c.Message != "" && same(other) {
				types = append(types, other.Type)
			}
		}
		from := "condition " + c.Type
		text := fmt.Sprintf("%s, %s for %s", c.Status, c.Reason, output.Duration(now.Sub(c.LastTransitionTime.Time)))
		if len(types) > 1 {
			from = "conditions " + strings.Join(types, ", ")
		}
		if first(c.Message) {
			text += ": " + c.Message
		}
		found = append(found, evidence{From: from, Text: output.Safe(text)})
	}
	return found
}

// stepTime returns the time of the newest step with its parts, if the run makes progress.
func stepTime(run *v1alpha1.TrainingRun) string {
	total := run.Status.Metric(contract.MetricStepSeconds)
	if total == nil || !meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionProgressing) {
		return ""
	}
	var parts []string
	for _, part := range []struct{ metric, name string }{{contract.MetricSamplingSeconds, "sampling"},
		{contract.MetricTrainingSeconds, "training"}, {contract.MetricSavingSeconds, "saving"}} {
		if v := run.Status.Metric(part.metric); v != nil {
			parts = append(parts, output.Number(v)+" s "+part.name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return output.Number(total) + " s: " + strings.Join(parts, ", ")
}

// isWrong reports whether a condition has another status than in a run that makes progress.
func isWrong(c metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended, v1alpha1.ConditionStalled:
		return c.Status == metav1.ConditionTrue
	}
	return c.Status != metav1.ConditionTrue
}

// podProblem names the problem that keeps a pod from running; it is empty for a pod that runs or has succeeded.
func podProblem(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("%s, is not scheduled: %s", pod.Status.Phase, c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing":
			return fmt.Sprintf("%s, container %s waits: %s %s", pod.Status.Phase, c.Name, c.State.Waiting.Reason,
				c.State.Waiting.Message)
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("%s, container %s ended with exit code %d: %s", pod.Status.Phase, c.Name,
				c.State.Terminated.ExitCode, c.State.Terminated.Reason)
		}
	}
	if pod.Status.Phase == corev1.PodPending {
		return "Pending"
	}
	return ""
}

// isOf reports whether an event is about a pod or its Job.
func isOf(event eventsv1.Event, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == event.Regarding.UID || owns(p, event) })
}

// warnings returns the newest of the warnings that about selects, without warnings that are over.
func warnings(about func(eventsv1.Event) bool, pods []corev1.Pod, events []eventsv1.Event) []eventsv1.Event {
	const most = 5
	var all []eventsv1.Event
	for _, event := range events {
		if about(event) && event.Type == corev1.EventTypeWarning && !isOver(event, pods) {
			all = append(all, event)
		}
	}
	slices.SortStableFunc(all, func(a, b eventsv1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	return all[:min(len(all), most)]
}

// startTime is the time in which a pod may start without a warning about its readiness probe.
const startTime = time.Minute

// isOver reports whether a warning about a pod is out of date: the pod has become ready since, has a node by now or
// has succeeded, or its readiness probe failed while it was starting.
func isOver(event eventsv1.Event, pods []corev1.Pod) bool {
	for _, pod := range pods {
		if pod.UID != event.Regarding.UID {
			continue
		}
		started := pod.Status.StartTime
		switch {
		case event.Reason == "FailedScheduling" && pod.Spec.NodeName != "":
			return true
		case event.Reason == "Unhealthy" && pod.Status.Phase == corev1.PodSucceeded:
			return true
		case event.Reason == "Unhealthy" && strings.HasPrefix(event.Note, "Readiness probe failed") && started != nil &&
			lastSeen(event).Before(started.Add(startTime)):
			return true
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return !c.LastTransitionTime.Time.Before(lastSeen(event).Truncate(time.Second))
			}
		}
	}
	return false
}

func owns(pod corev1.Pod, event eventsv1.Event) bool {
	owner := metav1.GetControllerOf(&pod)
	return owner != nil && owner.UID == event.Regarding.UID
}

func lastSeen(event eventsv1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	if !event.EventTime.IsZero() {
		return event.EventTime.Time
	}
	return event.DeprecatedLastTimestamp.Time
}

func (e explanation) print(w io.Writer) error {
	const width = 110
	var b strings.Builder
	reason := e.Reason
	if e.Code != "" && e.Code != reason {
		reason += " (" + e.Code + ")"
	}
	head := strings.Fields(e.Run + " " + e.Environment + " " + e.State + " " + e.Progress)
	fmt.Fprintf(&b, "%s\n\nReason:   %s\n", strings.Join(head, "  "), reason)
	b.WriteString(output.Wrap(e.Message, "          ", width))
	if e.StepTime != "" {
		fmt.Fprintf(&b, "Step:     %s\n", e.StepTime)
	}
	if len(e.Evidence) > 0 {
		b.WriteString("\nEvidence:\n")
	}
	for _, item := range e.Evidence {
		fmt.Fprintf(&b, "  %s\n%s", item.From, output.Wrap(item.Text, "      ", width))
	}
	if e.Repair != "" {
		fmt.Fprintf(&b, "\nWhat to do:\n%s", output.Wrap(e.Repair, "  ", width))
	}
	if len(e.Learning) > 0 {
		b.WriteString("\nWhy it does not learn:\n")
	}
	for _, l := range e.Learning {
		fmt.Fprintf(&b, "  %s\n%s%s", l.Cause, output.Wrap(l.Message, "      ", width),
			output.Wrap(l.Repair, "      ", width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
