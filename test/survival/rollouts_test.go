// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/rollouts"
)

// readRollouts reads what the artifacts have of the episodes of a version.
func (w *fixture) readRollouts(row artifacts.Row) []rollouts.Line {
	w.t.Helper()
	name := filepath.Join(w.artifacts, w.file.Run.UID, "rollouts", artifacts.TranscriptKey(row.Step, row.Lineage.String())+
		".jsonl.gz")
	file, err := os.Open(name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []rollouts.Line
	for decoder := json.NewDecoder(unpacked); ; {
		var line rollouts.Line
		switch err := decoder.Decode(&line); {
		case errors.Is(err, io.EOF):
			return lines
		case err != nil:
			w.t.Fatalf("%s: %v", name, err)
		}
		lines = append(lines, line)
	}
}

// checkRollouts demands the rollouts of each row: the slots of its batch, and the reward of its metrics.
func (w *fixture) checkRollouts() {
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
		for _, line := range w.readRollouts(row) {
			if next := (slot{line.Slot, line.Group}); len(got) == 0 || got[len(got)-1] != next {
				got = append(got, next)
			}
			if line.Episode != nil && line.Episode.Outcome == "Usable" && line.Group == "Usable" {
				sum, episodes = sum+line.Episode.Reward, episodes+1
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("slots of step %d (-row +rollouts):\n%s", row.Step, diff)
		}
		if reward, ok := row.Metrics[contract.MetricReward]; ok && (episodes == 0 || reward != sum/episodes) {
			w.t.Errorf("the reward of step %d is %g, and the mean of %g episodes %g", row.Step, reward, episodes, sum/episodes)
		}
	}
	if len(rows) < int(w.file.Fixed.Algorithm.Steps) {
		w.t.Errorf("there are %d rows, want at least %d", len(rows), w.file.Fixed.Algorithm.Steps)
	}
}
