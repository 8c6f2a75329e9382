// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// readEpisodes reads the episodes of a version from the artifacts.
func (w *fixture) readEpisodes(row artifacts.Row) []transcript.Line {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.artifacts, w.file.Run.UID, "episodes",
		artifacts.EpisodesFile(artifacts.EpisodesKey(row.Step, row.Lineage.String()))))
	if err != nil {
		w.t.Fatal(err)
	}
	lines, err := transcript.DecodeLines(data)
	if err != nil {
		w.t.Fatal(err)
	}
	return lines
}

// checkEpisodes checks the recorded episodes of each row: they have the slots of its batch, and the mean reward in its
// metrics.
func (w *fixture) checkEpisodes() {
	w.t.Helper()
	rows := w.rows()
	for _, row := range rows {
		type slot struct {
			Slot    int64
			Outcome string
		}
		var want, got []slot
		for _, s := range row.Manifest {
			want = append(want, slot{s.Slot, s.Outcome})
		}
		sum, episodes := 0.0, 0.0
		for _, line := range w.readEpisodes(row) {
			if next := (slot{line.Slot, line.Group}); len(got) == 0 || got[len(got)-1] != next {
				got = append(got, next)
			}
			if line.Episode != nil && line.Episode.Outcome == "Usable" && line.Group == "Usable" {
				sum, episodes = sum+line.Episode.Reward, episodes+1
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("slots of step %d (-row +episodes):\n%s", row.Step, diff)
		}
		if reward, ok := row.Metrics[contract.MetricReward]; ok && (episodes == 0 || reward != sum/episodes) {
			w.t.Errorf("the reward of step %d is %g, and the mean of %g episodes %g", row.Step, reward, episodes, sum/episodes)
		}
	}
	if len(rows) < int(w.file.Fixed.Algorithm.Steps) {
		w.t.Errorf("there are %d rows, want at least %d", len(rows), w.file.Fixed.Algorithm.Steps)
	}
}
