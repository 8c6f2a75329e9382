// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// TestTranscripts kills learners around a commit: each committed step then has the conversations of its first groups, and
// the weights are those of a run without conversations.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startRolloutWorker("w0")
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	for _, row := range w.rows() {
		if got := transcript.StepOf(w.readEpisodes(row)); len(got.Groups) != 0 || got.Missing == "" {
			t.Errorf("a run without conversations has %+v", got)
		}
	}
	for _, point := range []string{"", "step.measured", "row.written", "save.submitted", "save.answered", "claim.looked",
		"covered.sent", "retire.before"} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.TranscriptGroups = 2 })
			w.startRolloutWorker("w0")
			number := int32(1)
			if point != "" {
				<-w.startLearner(number, w.dieAt(point, 2)).done
				number++
			}
			w.compare(w.waitFor(w.startLearner(number, nil), contract.CauseCompleted), want)
			rows := w.rows()
			if len(rows) < int(w.file.Fixed.Algorithm.Steps) {
				t.Errorf("there are %d rows, want one for each step", len(rows))
			}
			for _, row := range rows {
				checkGroups(t, transcript.StepOf(w.readEpisodes(row)))
			}
		})
	}
}

func checkGroups(t *testing.T, s transcript.Step) {
	t.Helper()
	if len(s.Groups) != 2 {
		t.Errorf("step %d has %d groups, want 2", s.Step, len(s.Groups))
	}
	for _, g := range s.Groups {
		if len(g.Episodes) != 4 || len(g.Episodes[0].Conversations) != 1 {
			t.Fatalf("slot %d of step %d is %+v", g.Slot, s.Step, g)
		}
		c := g.Episodes[0].Conversations[0]
		if segment := c.Segments[0]; len(c.Messages) < 2 || len(segment.IDs) != segment.Tokens || segment.Sampled == 0 ||
			len(segment.Actions) != segment.Sampled || len(segment.Logprobs) != segment.Sampled ||
			len(segment.TrainerLogprobs) != segment.Sampled || len(segment.Advantages) != segment.Sampled {
			t.Errorf("slot %d of step %d has the conversation %+v", g.Slot, s.Step, c)
		}
	}
}
