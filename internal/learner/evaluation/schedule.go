// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Schedule selects the versions that are evaluated, and the tasks. A change of the tasks or settings gives another
// digest, and evaluations of its own.
type Schedule struct {
	// Digest is empty when nothing is evaluated.
	Digest string
	// Samples has the settings of each environment.
	Samples map[string]measure.Samples

	spec contract.Evaluation
	// steps is the number of optimizer steps, 0 for a run that only evaluates.
	steps int64
	seed  uint64
	// recorded is the number of groups whose conversations are recorded. records says whether episodes are recorded at
	// all.
	recorded int64
	records  bool
}

// digestLength is the number of hex digits of a digest.
const digestLength = 16

// NewSchedule reads the schedule out of the run file.
func NewSchedule(file contract.RunFile) Schedule {
	if file.Evaluation == nil || len(file.Evaluation.Environments) == 0 {
		return Schedule{}
	}
	s := Schedule{spec: *file.Evaluation, Samples: map[string]measure.Samples{}, recorded: file.RecordedGroups,
		records: file.ArtifactsDir != "" && !file.NoEpisodes}
	if alg := file.Fixed.Algorithm; alg != nil {
		s.steps, s.seed = alg.Steps, uint64(alg.Seed)
	}
	encoded, err := json.Marshal(s.spec.Environments)
	if err != nil {
		return Schedule{} // plain data always encode
	}
	sum := sha256.Sum256(encoded)
	s.Digest = hex.EncodeToString(sum[:])[:digestLength]
	for _, env := range s.spec.Environments {
		s.Samples[env.Name] = measure.Samples{PerTask: env.GroupSize, PassAt: env.PassAt}
	}
	return s
}

// Environments returns the environments by digest, as workers receive them.
func (s Schedule) Environments() map[string][]contract.Environment {
	if s.Digest == "" {
		return nil
	}
	return map[string][]contract.Environment{s.Digest: s.spec.Environments}
}

// IsDue reports whether a version is evaluated. A run that only evaluates has version 0 alone.
func (s Schedule) IsDue(step int64) bool {
	if s.Digest == "" || s.steps == 0 {
		return s.Digest != "" && step == 0
	}
	return IsDue(s.spec, step, s.steps)
}

// IsDue reports whether an evaluation applies to the version after step, in a run that has the given number of steps.
func IsDue(e contract.Evaluation, step, steps int64) bool {
	switch {
	case step == 0:
		return e.Before
	case step == steps && e.After:
		return true
	}
	return e.EverySteps > 0 && step%e.EverySteps == 0
}

// Leases lists the groups of an evaluation: every task of every split, in order. They have the same seeds in each
// evaluation, so that two of them differ by the policy alone.
func (s Schedule) Leases(v leases.Version) []exchange.Lease {
	var list []exchange.Lease
	session := v.SamplingSession(rl.Evaluate, s.Digest)
	for _, env := range s.spec.Environments {
		for _, split := range env.Splits {
			for task := range split.Tasks {
				list = append(list, exchange.Lease{
					Key:         rl.Key{Kind: rl.Evaluate, Slot: int64(len(list)), Lineage: v.Lineage, Evaluation: s.Digest},
					Environment: env.Name, Split: split.Name, Task: task,
					GroupSize: env.GroupSize, MinMembers: env.MinMembers,
					Sampler: v.Sampler, Seed: s.seed, SamplingSession: session,
					Transcript: int64(len(list)) < s.recorded,
				})
			}
		}
	}
	return list
}

// episodes returns the records of an evaluation's groups, which are in the order of its leases, or nil if none are
// recorded.
func (s Schedule) episodes(v rl.Version, groups []rl.Group) ([]byte, error) {
	if !s.records {
		return nil, nil
	}
	list := make([]transcript.TaskGroup, 0, len(groups))
	for i, lease := range s.Leases(leases.Version{Step: v.Step, Lineage: v.Lineage}) {
		list = append(list, transcript.TaskGroup{Group: groups[i], Split: lease.Split, Task: lease.Task,
			Recorded: lease.Transcript, Passed: measure.Passed})
	}
	return transcript.EncodeLines(transcript.Line{Step: v.Step, Lineage: v.Lineage.String(), SampledAt: v.Step,
		Evaluation: s.Digest}, list, transcript.Trained{})
}
