// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package resolve finds what a run refers to: the environments to pin, and the checkpoint to begin from. What is
// missing is a Problem, which names the condition that does not hold and the repair.
package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Problem is why an attempt cannot start: a condition that does not hold.
type Problem struct {
	Condition string
	Reason    string
	Message   string
	// NeedsAction says that somebody has to act; otherwise the problem passes by itself.
	NeedsAction bool
	// Grace says that it may pass by itself within stalledAfterSeconds, and needs action only after that.
	Grace bool
}

// Environments gives the pins of all environments that a run refers to. What the run has pinned
// already stays as it is; pinned is nil when there is no run file to read that from.
func Environments(run *v1alpha1.TrainingRun, pinned desired.Pins,
	environments map[string]*v1alpha1.RewardEnvironment) (desired.Pins, *Problem) {
	pins := desired.Pins{}
	for _, name := range desired.References(run) {
		if pin, ok := pinned[name]; ok {
			pins[name] = pin
			continue
		}
		env := environments[name]
		if p := usable(name, env); p != nil {
			return nil, p
		}
		pins[name] = pinOf(env)
	}
	if p := checkPorts(pins, pinned); p != nil {
		return nil, p
	}
	if pinned != nil {
		return pins, nil
	}
	return pins, environmentsChanged(run, pins)
}

// checkPorts refuses two servers of one port. The pods of a run share their addresses: a session of one environment
// would be opened at the server of the other.
func checkPorts(pins, pinned desired.Pins) *Problem {
	err := pins.CheckPorts()
	if err == nil {
		return nil
	}
	message := err.Error() + "."
	if len(pinned) > 0 {
		message += fmt.Sprintf(" What the run has pinned keeps its port (%s): change another one, or remove it from "+
			"evaluation.environments.",
			strings.Join(slices.Sorted(maps.Keys(pinned)), ", "))
	}
	return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonEnvironmentNotReady,
		Message: message, NeedsAction: true}
}

// Repin gives the pins of all environments as they are now, for a run whose settings are not fixed yet. One that was
// pinned and does not exist any more stays as it is.
func Repin(run *v1alpha1.TrainingRun, pinned desired.Pins,
	environments map[string]*v1alpha1.RewardEnvironment) (desired.Pins, *Problem) {
	missing := desired.Pins{}
	for name, pin := range pinned {
		if environments[name] == nil {
			missing[name] = pin
		}
	}
	return Environments(run, missing, environments)
}

// SharedServers says which environment has a server that the run has once, for a manager that may not run such servers.
func SharedServers(pins desired.Pins) *Problem {
	name, ok := pins.HasShared()
	if !ok {
		return nil
	}
	return &Problem{
		Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonSharedServersDisabled, NeedsAction: true,
		Message: fmt.Sprintf("RewardEnvironment %q has ors.server.shared, and this operator may not run Deployments: set "+
			"the chart's value "+
			"environmentServers.shared to true, or remove the field.", name),
	}
}

func usable(name string, env *v1alpha1.RewardEnvironment) *Problem {
	if env == nil {
		return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonEnvironmentNotFound,
			Message: fmt.Sprintf("RewardEnvironment %q does not exist in this namespace: create it, or correct environmentRef.",
				name), NeedsAction: true}
	}
	ready := meta.FindStatusCondition(env.Status.Conditions, v1alpha1.ConditionReady)
	probed := ready != nil && ptr.Deref(env.Status.ObservedGeneration, 0) == env.Generation
	if !probed {
		return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonEnvironmentNotReady,
			Message: fmt.Sprintf("RewardEnvironment %q is being probed.", name)}
	}
	if !status.IsTrue(env.Status.Conditions, v1alpha1.ConditionReady) {
		unstarted := ready.Reason == v1alpha1.ReasonProbeNotStarting
		repairable := ready.Reason == v1alpha1.ReasonInvalid || ready.Reason == v1alpha1.ReasonDataInvalid
		return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonEnvironmentNotReady,
			Message:     fmt.Sprintf("RewardEnvironment %q is not ready: %s", name, ready.Message),
			NeedsAction: repairable || unstarted, Grace: unstarted}
	}
	return nil
}

func pinOf(env *v1alpha1.RewardEnvironment) desired.Pin {
	pin := desired.Pin{
		Digest: env.Status.Digest, Definition: desired.PinnedDefinition(env), Splits: map[string]int64{},
		DeclaresTools: ptr.Deref(env.Status.DeclaresTools, false),
	}
	for _, split := range env.Status.Splits {
		pin.Splits[split.Name] = ptr.Deref(split.Tasks, 0)
	}
	return pin
}

// environmentsChanged compares with the digests that the status of a started run has: without its run file nothing
// else shows whether the environments are those that it started with.
func environmentsChanged(run *v1alpha1.TrainingRun, pins desired.Pins) *Problem {
	if run.Status.StartTime == nil {
		return nil
	}
	digests := map[string]string{}
	for _, e := range run.Status.Environments {
		digests[e.Name] = e.Digest
	}
	for _, use := range run.Spec.Environments {
		name := desired.RefName(use.EnvironmentUse)
		if digest := digests[use.Name]; digest != "" && digest != pins[name].Digest {
			return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonEnvironmentChanged,
				Message: fmt.Sprintf("RewardEnvironment %q has changed since the run started, and the run's files were deleted: "+
					"restore its spec.", name), NeedsAction: true}
		}
	}
	return nil
}

// InitFrom returns the checkpoint that initFrom refers to.
func InitFrom(run *v1alpha1.TrainingRun, source *v1alpha1.TrainingRun) (string, *Problem) {
	init := run.Spec.InitFrom
	if init == nil || init.RunRef == nil {
		return ptr.Deref(init, v1alpha1.InitFrom{}).Checkpoint, nil
	}
	notFound := func(format string, args ...any) (string, *Problem) {
		return "", &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonInitFromNotFound,
			Message: fmt.Sprintf(format, args...), NeedsAction: true}
	}
	name := init.RunRef.Name
	if source == nil {
		return notFound("TrainingRun %q does not exist in this namespace: correct initFrom.runRef.name, or give "+
			"initFrom.checkpoint.", name)
	}
	if source.UID == run.UID {
		return notFound("initFrom.runRef names this run itself: name another, or give initFrom.checkpoint.")
	}
	complete := status.IsTrue(source.Status.Conditions, v1alpha1.ConditionComplete)
	failed := status.IsTrue(source.Status.Conditions, v1alpha1.ConditionFailed)
	switch awaited := init.RunRef.When == v1alpha1.WhenComplete; {
	case awaited && failed:
		return notReady(true, "TrainingRun %q has failed, and initFrom.runRef.when is Complete: retry that run with its "+
			"spec.retryGeneration, or set when to Available.", name)
	case awaited && !complete:
		return notReady(false, "TrainingRun %q is not complete yet, and initFrom.runRef.when is Complete.", name)
	}
	if latest := status.Latest(&source.Status); init.RunRef.Step == nil && latest != nil {
		return initPath(run, *latest), nil
	}
	for _, c := range source.Status.Checkpoints {
		if init.RunRef.Step != nil && c.Step == *init.RunRef.Step {
			return initPath(run, c), nil
		}
	}
	if complete || failed {
		if len(source.Status.Checkpoints) == 0 {
			return notFound("TrainingRun %q has ended without a checkpoint: correct initFrom.runRef.name, or give "+
				"initFrom.checkpoint.", name)
		}
		return notFound("TrainingRun %q has ended and lists no such checkpoint: its steps are %s; correct "+
			"initFrom.runRef.step, or give initFrom.checkpoint.", name, stepsOf(source))
	}
	return notReady(false, "TrainingRun %q has not saved the checkpoint yet.", name)
}

func notReady(needsAction bool, format string, args ...any) (string, *Problem) {
	return "", &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonInitFromNotReady,
		Message: fmt.Sprintf(format, args...), NeedsAction: needsAction}
}

// initPath prefers sampler weights where nothing is trained; everything else needs the state.
func initPath(run *v1alpha1.TrainingRun, c v1alpha1.Checkpoint) string {
	if run.Spec.Mode == v1alpha1.ModeEvaluate {
		return cmp.Or(c.Sampler, c.State)
	}
	return c.State
}

func stepsOf(run *v1alpha1.TrainingRun) string {
	var steps []string
	for _, c := range run.Status.Checkpoints {
		if step := fmt.Sprint(c.Step); !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return strings.Join(steps, ", ")
}

// UnreadableFile describes why the run file of an earlier attempt cannot be read; nil for no error.
func UnreadableFile(err error) *Problem {
	if err == nil {
		return nil
	}
	return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonRunFileInvalid, Message: err.Error(),
		NeedsAction: true}
}

// FileProblem describes why a run file cannot be made, and what to do.
func FileProblem(err error) *Problem {
	if spec, ok := errors.AsType[*desired.SpecError](err); ok {
		problem := &Problem{Condition: spec.Condition, Reason: spec.Reason, Message: spec.Message, NeedsAction: true}
		if spec.Reason == v1alpha1.ReasonUnsupportedByFormat {
			problem.Message += "; the run then continues by itself."
		}
		return problem
	}
	return &Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonRunFileInvalid,
		Message: "The spec does not make a valid run: " + err.Error(), NeedsAction: true}
}
