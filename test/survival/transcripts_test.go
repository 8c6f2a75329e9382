// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// transcripts reads the transcripts of a run by their steps. None is cut short, each has its page, and no other file is
// left.
func (w *fixture) transcripts() map[int64]transcript.Step {
	w.t.Helper()
	dir := filepath.Join(w.artifacts, w.file.Run.UID, "transcripts")
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	steps := map[int64]transcript.Step{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		switch filepath.Ext(entry.Name()) {
		case ".html":
			if !strings.HasSuffix(string(data), "</html>\n") {
				w.t.Errorf("the page %s is cut short", entry.Name())
			}
		case ".json":
			var step transcript.Step
			if err := json.Unmarshal(data, &step); err != nil {
				w.t.Errorf("the transcript %s is cut short: %v", entry.Name(), err)
			}
			if _, ok := steps[step.Step]; ok {
				w.t.Errorf("step %d has two transcripts", step.Step)
			}
			steps[step.Step] = step
		default:
			w.t.Errorf("%s is left over", entry.Name())
		}
	}
	return steps
}

// TestTranscripts kills learners around a commit: each committed step then has a transcript or states that it is
// missing, and the weights are those of a run without transcripts.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startRolloutWorker("w0")
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	if got := w.transcripts(); len(got) != 0 {
		t.Errorf("%d transcripts of a run without them", len(got))
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
			steps := w.transcripts()
			for step := int64(1); step <= w.file.Fixed.Algorithm.Steps; step++ {
				s, ok := steps[step]
				switch {
				case !ok:
					t.Errorf("step %d has no transcript, and nothing states that", step)
				case s.Missing != "" && (step != 2 || point == "" || point == "step.measured" || point == "row.written" ||
					point == "retire.before"):
					t.Errorf("step %d has no transcript: %s", step, s.Missing)
				case s.Missing == "":
					checkGroups(t, s)
				}
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
		if g.Missing != "" || len(g.Episodes) != 4 || len(g.Episodes[0].Conversations) != 1 {
			t.Errorf("slot %d of step %d is %+v", g.Slot, s.Step, g)
		}
	}
}
