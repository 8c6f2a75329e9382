// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"github.com/tinker-operator/tinker-operator/internal/learner/rollouts"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// encodedRollouts returns the results of the step's episodes; nil without artifacts.
func (s *trainingStep) encodedRollouts() []byte {
	if !s.journal.HasStore() {
		return nil
	}
	at := s.loop.at
	encoded, err := rollouts.Encode(at.Step, at.Lineage.String(), s.batch.Version.Step, s.batch.Groups)
	if err != nil {
		s.config.Logger.Warn("rollouts are not recorded", "step", at.Step, "err", err)
	}
	return encoded
}

// transcript returns what people read of the step: the first slots of its batch, those that were dropped among them.
func (s *trainingStep) transcript() transcript.Step {
	out := transcript.Step{Step: s.loop.at.Step, Lineage: s.loop.at.Lineage.String(), SampledAt: s.batch.Version.Step}
	for _, group := range s.batch.Groups[:min(len(s.batch.Groups), s.file.TranscriptGroups)] {
		out.Groups = append(out.Groups, transcript.FromGroup(group))
	}
	out.Bound()
	return out
}

// uploaded returns the rollouts of the step's batch, those of groups that were dropped among them.
func (s *trainingStep) uploaded() openreward.Batch {
	out := openreward.Batch{
		Version: s.loop.at.Version, Time: s.config.Now(),
	}
	for _, group := range s.batch.Groups {
		task := s.batches.Task(group.Key.Slot)
		out.Groups = append(out.Groups, openreward.TaskGroup{Group: transcript.FromGroup(group), Split: task.Split,
			Task: task.Index})
	}
	return out
}
