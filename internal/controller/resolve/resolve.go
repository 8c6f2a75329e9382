// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package resolve finds the objects that a run refers to: the environments to pin, and the checkpoint to begin from. If
// something is missing, it returns the problem that keeps the next attempt from starting.
package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Environments returns the pins of all environments that a run refers to. Existing pins stay as they are; pinned is nil
// if there is no run file to read them from.
func Environments(run *v1alpha1.TrainingRun, pinned desired.Pins,
	environments map[string]*v1alpha1.RewardEnvironment) (desired.Pins, *problem.Problem) {
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

// checkPorts refuses two servers with the same port. The servers of a run share an address, so that a session of one
// environment would be opened at the server of the other.
func checkPorts(pins, pinned desired.Pins) *problem.Problem {
	err := pins.CheckPorts()
	if err == nil {
		return nil
	}
	evidence := err.Error()
	if len(pinned) > 0 {
		evidence += "; the run keeps the ports of " + strings.Join(slices.Sorted(maps.Keys(pinned)), ", ")
	}
	return &problem.Problem{Code: problem.PortsCollide, Evidence: evidence}
}

// Repin returns the pins of all environments as they are now, for a run whose settings are not fixed yet. The pin of an
// environment that no longer exists stays as it is.
func Repin(run *v1alpha1.TrainingRun, pinned desired.Pins,
	environments map[string]*v1alpha1.RewardEnvironment) (desired.Pins, *problem.Problem) {
	missing := desired.Pins{}
	for name, pin := range pinned {
		if environments[name] == nil {
			missing[name] = pin
		}
	}
	return Environments(run, missing, environments)
}

// SharedServers returns the problem of a run with a shared environment server, or with programs in pods of their own,
// at a manager that may run neither; nil if the run has neither.
func SharedServers(pins desired.Pins) *problem.Problem {
	if name, ok := pins.HasShared(); ok {
		return &problem.Problem{Code: problem.SharedServersDisabled, Evidence: strconv.Quote(name)}
	}
	if name, ok := pins.HasPods(); ok {
		return &problem.Problem{Code: problem.ProgramPodsDisabled, Evidence: strconv.Quote(name)}
	}
	return nil
}

func usable(name string, env *v1alpha1.RewardEnvironment) *problem.Problem {
	named := strconv.Quote(name)
	if env == nil {
		return &problem.Problem{Code: problem.EnvironmentNotFound, Evidence: named}
	}
	ready := meta.FindStatusCondition(env.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionUnknown ||
		ptr.Deref(env.Status.ObservedGeneration, 0) != env.Generation {
		return &problem.Problem{Code: problem.EnvironmentProbing, Evidence: named}
	}
	code := problem.EnvironmentNotReady
	switch {
	case ready.Status == metav1.ConditionTrue:
		return nil
	case ready.Reason == v1alpha1.ReasonSpecInvalid, ready.Reason == v1alpha1.ReasonDataInvalid:
		code = problem.EnvironmentInvalid
	case ready.Reason == v1alpha1.ReasonProbeNotStarting:
		code = problem.EnvironmentNotStarting
	}
	return &problem.Problem{Code: code, Evidence: named + ": " + strings.TrimRight(ready.Message, ".")}
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

// environmentsChanged returns the problem of a started run whose status has other digests of its environments than
// pins; nil if there is none. Without a run file, nothing else shows whether the environments are those with which the
// run started.
func environmentsChanged(run *v1alpha1.TrainingRun, pins desired.Pins) *problem.Problem {
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
			return &problem.Problem{Code: problem.EnvironmentChanged, Evidence: strconv.Quote(name)}
		}
	}
	return nil
}

// InitFrom returns the checkpoint that initFrom refers to, or the problem of a reference without a checkpoint. source
// is the run that initFrom names; nil if there is none.
func InitFrom(run *v1alpha1.TrainingRun, source *v1alpha1.TrainingRun) (string, *problem.Problem) {
	init := run.Spec.InitFrom
	if init == nil || init.RunRef == nil {
		return ptr.Deref(init, v1alpha1.InitFrom{}).Checkpoint, nil
	}
	if source == nil {
		return notFound("TrainingRun " + strconv.Quote(init.RunRef.Name) + " does not exist in this namespace")
	}
	if source.UID == run.UID {
		return notFound("initFrom.runRef names this run itself")
	}
	return fromRun(run, source, init)
}

// fromRun returns the checkpoint of a run that initFrom refers to.
func fromRun(run, source *v1alpha1.TrainingRun, init *v1alpha1.InitFrom) (string, *problem.Problem) {
	name := strconv.Quote(init.RunRef.Name)
	complete := status.IsTrue(source.Status.Conditions, v1alpha1.ConditionComplete)
	failed := status.IsTrue(source.Status.Conditions, v1alpha1.ConditionFailed)
	switch awaited := init.RunRef.When == v1alpha1.WhenComplete; {
	case awaited && failed:
		return "", &problem.Problem{Code: problem.InitFromFailed, Evidence: name}
	case awaited && !complete:
		return "", &problem.Problem{Code: problem.InitFromNotComplete, Evidence: name}
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
			return notFound("TrainingRun " + name + " has ended without a checkpoint")
		}
		return notFound("TrainingRun " + name + " has ended, and its checkpoints are of the steps " + stepsOf(source))
	}
	return "", &problem.Problem{Code: problem.InitFromNotReady, Evidence: name}
}

func notFound(why string) (string, *problem.Problem) {
	return "", &problem.Problem{Code: problem.InitFromNotFound, Evidence: why}
}

// initPath prefers sampler weights if nothing is trained; everything else needs the state.
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

// UnreadableFile returns the problem of a run file of an earlier attempt that cannot be read; nil for no error.
func UnreadableFile(err error) *problem.Problem {
	if err == nil {
		return nil
	}
	return &problem.Problem{Code: problem.RunFileUnreadable, Evidence: err.Error()}
}

// FileProblem returns the problem for an error of desired.File.
func FileProblem(err error) *problem.Problem {
	if spec, ok := errors.AsType[*desired.SpecError](err); ok {
		return &spec.Problem
	}
	return &problem.Problem{Code: problem.RunFileInvalid, Evidence: err.Error()}
}
