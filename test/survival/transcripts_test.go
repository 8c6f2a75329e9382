// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// TestTranscripts kills learners around a commit: each committed step then has the conversations of its first groups,
// and the weights equal the weights of a run without conversations.
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
			w := newFixture(t, func(f *contract.RunFile) { f.RecordedGroups = 2 })
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

// TestEpisodesOfEvaluations checks that each evaluation has a line for each sample, that the share of passing samples
// is the metric, that the first groups have their conversations, and that none are recorded if none are requested.
func TestEpisodesOfEvaluations(t *testing.T) {
	t.Parallel()
	for name, records := range map[string]bool{"recorded": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.RecordedGroups, f.NoEpisodes = 2, !records })
			w.startRolloutWorker("w0")
			<-w.startLearner(1, w.dieAt("covered.sent", 2)).done
			w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			evaluations := readLines[artifacts.Evaluation](w, "evaluations.jsonl")
			if len(evaluations) != 2 {
				t.Fatalf("there are %d evaluations, want 2", len(evaluations))
			}
			files, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "episodes", "*"))
			if err != nil || (len(files) > 0) != records {
				t.Errorf("there are the files %q (%v), want some: %v", files, err, records)
			}
			for _, e := range evaluations {
				if records {
					checkEvaluation(w, e)
				}
			}
		})
	}
}

func checkEvaluation(w *fixture, e artifacts.Evaluation) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.artifacts, w.file.Run.UID, "episodes", artifacts.EpisodesFile(
		"evaluation-"+artifacts.EpisodesKey(e.Step, e.Lineage.String())+"-"+e.Digest)))
	if err != nil {
		w.t.Fatal(err)
	}
	lines, err := transcript.DecodeLines(data)
	if err != nil {
		w.t.Fatal(err)
	}
	passed, tasks := 0.0, map[int64]bool{}
	for _, line := range lines {
		if line.Evaluation != e.Digest || line.Split != "test" || line.Episode == nil || line.Episode.Passed == nil {
			w.t.Fatalf("the evaluation of step %d has the line %+v", e.Step, line)
		}
		if *line.Episode.Passed {
			passed++
		}
		tasks[line.Task] = true
	}
	if share := passed / float64(len(lines)); math.Abs(share-e.Metrics["test/pass@1"]) > 1e-9 || len(tasks) != 6 {
		w.t.Errorf("%g of the %d episodes of %d tasks pass, and pass@1 of 6 is %g", share, len(lines), len(tasks),
			e.Metrics["test/pass@1"])
	}
	step := transcript.StepOf(lines)
	if len(step.Groups) != 2 || len(step.Groups[0].Episodes[0].Conversations[0].Messages) < 2 {
		w.t.Errorf("the conversations of the evaluation of step %d are %+v", e.Step, step.Groups)
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
