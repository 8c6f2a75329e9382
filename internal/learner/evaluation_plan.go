// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// evaluationPlan is what is evaluated and how. Changing it makes another plan, and evaluations of its own.
type evaluationPlan struct {
	// digest is empty when nothing is evaluated.
	digest string
	spec   contract.Evaluation
	passAt map[string][]int
}

// planDigestLength is how many hex digits name a plan.
const planDigestLength = 16

func planEvaluation(file contract.RunFile) evaluationPlan {
	if file.Evaluation == nil || len(file.Evaluation.Environments) == 0 {
		return evaluationPlan{}
	}
	p := evaluationPlan{spec: *file.Evaluation, passAt: map[string][]int{}}
	encoded, err := json.Marshal(p.spec.Environments)
	if err != nil {
		return evaluationPlan{} // plain data always encode
	}
	sum := sha256.Sum256(encoded)
	p.digest = hex.EncodeToString(sum[:])[:planDigestLength]
	for _, env := range p.spec.Environments {
		p.passAt[env.Name] = env.PassAt
	}
	return p
}

// environments by plan, as workers are told.
func (p evaluationPlan) environments() map[string][]contract.Environment {
	if p.digest == "" {
		return nil
	}
	return map[string][]contract.Environment{p.digest: p.spec.Environments}
}

// isDue says whether a version of a run is evaluated. A run that only evaluates has version 0 alone.
func (p evaluationPlan) isDue(step int64, file contract.RunFile) bool {
	if p.digest == "" {
		return false
	}
	if file.Fixed.Algorithm == nil {
		return step == 0
	}
	switch {
	case step == 0:
		return p.spec.Before
	case step == file.Fixed.Algorithm.Steps && p.spec.After:
		return true
	}
	return isMultiple(step, p.spec.EverySteps)
}

// measures says whether a metric is one of evaluations.
func (p evaluationPlan) measures(metric string) bool { return p.digest != "" && isTest(metric) }

func isTest(metric string) bool { return strings.HasPrefix(metric, "test/") }

// leases are the groups of an evaluation: every task of every split, in order. They have the same seeds in
// each evaluation, so that two of them differ by the policy alone.
func (p evaluationPlan) leases(v leases.Version, seed uint64) []exchange.Lease {
	var leases []exchange.Lease
	session := v.SamplingSession(rl.Evaluate, p.digest)
	for _, env := range p.spec.Environments {
		for _, split := range env.Splits {
			for task := range split.Tasks {
				leases = append(leases, exchange.Lease{
					Key: rl.Key{
						Kind: rl.Evaluate, Slot: int64(len(leases)), Lineage: v.Lineage, Evaluation: p.digest,
					},
					Environment: env.Name, Split: split.Name, Task: task,
					GroupSize: env.GroupSize, MinMembers: env.MinMembers,
					Sampler: v.Sampler, Seed: seed, SamplingSession: session,
				})
			}
		}
	}
	return leases
}
