// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// encodedEpisodes returns the episodes of the step, and the groups that were dropped; nil if none are recorded.
func (s *trainingStep) encodedEpisodes() []byte {
	if !s.learner.journal.HasStore() || s.learner.file.NoEpisodes || s.learner.examples != nil {
		return nil
	}
	at := s.learner.loop.at
	groups := make([]transcript.TaskGroup, 0, len(s.batch.Groups))
	for i, group := range s.batch.Groups {
		task := s.learner.batches.Task(group.Key.Slot)
		groups = append(groups, transcript.TaskGroup{Group: group, Split: task.Split, Task: task.Index,
			Recorded: int64(i) < s.learner.file.RecordedGroups})
	}
	encoded, err := transcript.EncodeLines(transcript.Line{Step: at.Step, Lineage: at.Lineage.String(),
		SampledAt: s.batch.Version.Step}, groups, transcript.Trained{Datums: s.work.Datums, Logprobs: s.replies.Logprobs})
	if err != nil {
		s.learner.config.Logger.Warn("episodes are not recorded", "step", at.Step, "err", err)
	}
	return encoded
}

// uploaded returns the rollouts of the step's batch, including the rollouts of dropped groups.
func (s *trainingStep) uploaded() openreward.Batch {
	out := openreward.Batch{
		Version: s.learner.loop.at.Version, Time: s.learner.config.Now(),
	}
	for _, group := range s.batch.Groups {
		task := s.learner.batches.Task(group.Key.Slot)
		out.Groups = append(out.Groups, openreward.TaskGroup{Group: transcript.FromGroup(group), Split: task.Split,
			Task: task.Index})
	}
	return out
}
