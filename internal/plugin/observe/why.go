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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const whyHelp = `kubectl tinker why says in one screen what a run does or waits for: the reason, the evidence and
a repair. The evidence are conditions, pods and the newest warnings. If the figures of the newest steps show why the
policy does not learn, it says that as well.`

const whyExample = `  kubectl tinker why arithmetic
  kubectl tinker why arithmetic -o json`

// unobserved is the state of a run that the operator has not looked at.
const unobserved = "New"

// explanation is why a run is in its state.
type explanation struct {
	Run      string     `json:"run"`
	State    string     `json:"state"`
	Progress string     `json:"progress,omitempty"`
	Reason   string     `json:"reason"`
	Code     string     `json:"code,omitempty"`
	Message  string     `json:"message,omitempty"`
	Repair   string     `json:"repair,omitempty"`
	Evidence []evidence `json:"evidence"`
	// Learning is why the policy does not learn, by the figures of its steps.
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

// NewWhy returns the command that explains the state of a run.
func NewWhy(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var format *output.Format
	command := cluster.ForOneRun(&cobra.Command{
		Use: "why RUN", Short: "Say what a run waits for, and what to do about it", Long: whyHelp, Example: whyExample,
	}, func(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) error {
		return why(ctx, env, connection, run, *format)
	})
	format = output.Flag(command.Flags())
	return command
}

func why(ctx context.Context, env cli.IO, connection *cli.Connection, run *v1alpha1.TrainingRun,
	format output.Format) error {
	var pods corev1.PodList
	selected := client.MatchingLabels{v1alpha1.LabelRun: run.Name, v1alpha1.LabelRunUID: string(run.UID)}
	if err := connection.List(ctx, &pods, client.InNamespace(run.Namespace), selected); err != nil {
		return fmt.Errorf("listing the pods of run %q: %w", run.Name, err)
	}
	// People who may read runs need not be permitted to read events: the rest is worth showing without them.
	var events eventsv1.EventList
	unread := connection.List(ctx, &events, client.InNamespace(run.Namespace))
	found := explain(run, pods.Items, events.Items, env.Now())
	if unread != nil {
		found.Evidence = append(found.Evidence, evidence{From: "events",
			Text: output.Safe("cannot be read: " + unread.Error())})
	}
	if format == output.JSON {
		return output.PrintJSON(env.Stdout, found)
	}
	return found.print(env.Stdout)
}

// decisive returns the condition that decides what a run does.
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
		if status.CodeOf(run.Status.Codes, kind) == problem.WorkersMissing &&
			meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionProgressing) {
			continue // The run makes progress with the workers that it has.
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

// explain says why a run is in its state.
func explain(run *v1alpha1.TrainingRun, pods []corev1.Pod, events []eventsv1.Event, now time.Time) explanation {
	c := decisive(run)
	code := status.CodeOf(run.Status.Codes, c.Type)
	found := explanation{
		Run: run.Name, State: cmp.Or(run.Status.State, unobserved), Progress: status.Steps(&run.Status), Reason: c.Reason,
		Code: string(code), Message: output.Safe(c.Message),
		Repair: strings.ReplaceAll(problem.AdviceOf(code), "$(run)", run.Name), Evidence: []evidence{},
		Learning: learningOf(run),
	}
	add := func(from, format string, args ...any) {
		found.Evidence = append(found.Evidence, evidence{From: from, Text: output.Safe(fmt.Sprintf(format, args...))})
	}
	for _, other := range run.Status.Conditions {
		if isWrong(other) {
			age := output.Duration(now.Sub(other.LastTransitionTime.Time))
			add("condition "+other.Type, "%s, %s for %s: %s", other.Status, other.Reason, age, other.Message)
		}
	}
	if len(run.Status.PendingChanges) > 0 {
		add("pending changes", "%s: suspend and resume the run to have them at once",
			strings.Join(run.Status.PendingChanges, ", "))
	}
	for _, e := range run.Status.Environments {
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
		if a.Cause != "" && a.Cause != string(contract.CauseCompleted) {
			add(fmt.Sprintf("attempt %d", a.Number), "ended with %s: %s", strings.Trim(a.Cause+" "+a.Reason, " "), a.Message)
		}
	}
	for _, event := range warnings(run, pods, events) {
		add("event of "+event.Regarding.Name, "%s: %s", event.Reason, event.Note)
	}
	return found
}

// isWrong reports whether a condition has another status than in a run that makes progress.
func isWrong(c metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended, v1alpha1.ConditionStalled:
		return c.Status == metav1.ConditionTrue
	}
	return c.Status != metav1.ConditionTrue
}

// podProblem says what keeps a pod from running; it is empty for one that runs or has succeeded.
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

// warnings returns the newest warnings about a run, its Jobs and its pods, without those of pods that have become ready
// since.
func warnings(run *v1alpha1.TrainingRun, pods []corev1.Pod, events []eventsv1.Event) []eventsv1.Event {
	const most = 5
	var all []eventsv1.Event
	for _, event := range events {
		about := event.Regarding.UID == run.UID ||
			slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == event.Regarding.UID || owns(p, event) })
		if about && event.Type == corev1.EventTypeWarning && !isOver(event, pods) {
			all = append(all, event)
		}
	}
	slices.SortStableFunc(all, func(a, b eventsv1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	return all[:min(len(all), most)]
}

// isOver reports whether the pod of an event has become ready since, as each one does whose readiness probe failed at
// first.
func isOver(event eventsv1.Event, pods []corev1.Pod) bool {
	for _, pod := range pods {
		if pod.UID != event.Regarding.UID {
			continue
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
	fmt.Fprintf(&b, "%s\n\nReason:   %s\n", strings.Join(strings.Fields(e.Run+" "+e.State+" "+e.Progress), "  "), reason)
	b.WriteString(output.Wrap(e.Message, "          ", width))
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
