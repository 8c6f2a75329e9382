// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// maxSplits is the maximum number of splits in a status, as the CRD has it.
const maxSplits = 32

// computeStatus returns the status that an environment should have. It does not change the environment.
func computeStatus(env *v1alpha1.RewardEnvironment, p plan, now time.Time) v1alpha1.RewardEnvironmentStatus {
	next := *env.Status.DeepCopy()
	if p.ready.Type == "" {
		return next
	}
	next.ObservedGeneration = ptr.To(env.Generation)
	status.Set(&next.Conditions, &next.Codes, env.Generation, now, keepFailure(env, p))
	if p.found == nil {
		return next
	}
	next.ProbedGeneration, next.Digest = ptr.To(env.Generation), p.found.digest
	next.ProbeTime = ptr.To(metav1.NewTime(p.found.at))
	next.CanaryReward = nil
	if reward := p.found.result.CanaryReward; reward != nil {
		next.CanaryReward = ptr.To(status.Round(*reward))
	}
	next.Code, next.Image, next.Packages = p.found.code, p.found.image, p.found.packages
	next.Deterministic = p.found.result.Deterministic
	next.DeclaresTools = ptr.To(p.found.result.DeclaresTools)
	next.Dataset = datasetStatus(p.found.result.Contents)
	next.Splits = nil
	var tasks int64
	for _, split := range p.found.result.Splits {
		next.Splits = append(next.Splits, v1alpha1.SplitStatus{Name: split.Name, Tasks: ptr.To(split.Tasks)})
		tasks += split.Tasks
	}
	next.Tasks = ptr.To(tasks)
	return next
}

// keepFailure keeps a failure visible while the same definition is tried again.
func keepFailure(env *v1alpha1.RewardEnvironment, p plan) status.Condition {
	c := p.ready
	was := status.Find(env.Status.Conditions, env.Status.Codes, v1alpha1.ConditionReady)
	if c.Reason != v1alpha1.ReasonProbing || was == nil || was.Status != metav1.ConditionFalse ||
		was.ObservedGeneration != env.Generation {
		return c
	}
	if was.Reason == v1alpha1.ReasonProbeNotStarting && !p.pending {
		return c // It has started now.
	}
	return *was
}

// environmentDigest digests a definition, the result of its probe, and the image of its modules and the wheels of its
// requirements, if it has any: runs pin this digest.
func environmentDigest(definition contract.Definition, result contract.ProbeResult, image string,
	packages []string) (string, error) {
	if len(result.Splits) > maxSplits {
		return "", fmt.Errorf("the environment has %d splits, at most %d are supported", len(result.Splits), maxSplits)
	}
	data, err := json.Marshal(struct {
		Definition contract.Definition
		Splits     []contract.ProbeSplit
		Contents   *contract.DataContents `json:",omitempty"`
		Image      string                 `json:",omitempty"`
		Packages   []string               `json:",omitempty"`
	}{definition, result.Splits, result.Contents, image, packages})
	if err != nil {
		return "", fmt.Errorf("digesting environment: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// datasetStatus returns the data that a probe has read, in the form of the status; nil if it has read none.
func datasetStatus(contents *contract.DataContents) *v1alpha1.DatasetStatus {
	if contents == nil {
		return nil
	}
	read := &v1alpha1.DatasetStatus{Revision: contents.Revision}
	for _, s := range contents.Sources {
		read.Sources = append(read.Sources, v1alpha1.DataSourceStatus{Name: s.Name, SHA256: s.SHA256, Rows: ptr.To(s.Rows)})
	}
	return read
}

// newEvents returns the event that follows from a change of the condition Ready, if there is one.
func newEvents(before, after *v1alpha1.RewardEnvironmentStatus) []record.Event {
	_, is, changed := record.Transition(before.Conditions, after.Conditions, v1alpha1.ConditionReady)
	switch {
	case is == nil || !changed:
		return nil
	case is.Status == metav1.ConditionFalse:
		return []record.Event{record.Warning(is.Reason, "Probe", is.Message)}
	default:
		return []record.Event{record.Normal(is.Reason, "Probe", is.Message)}
	}
}
