// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestResumeReportsWhatTheManagerMissed resumes a run of which the manager has no record, and checks that the manager
// receives all steps that its history keeps, with their times and evaluations. A second model of the same learner
// reports only the newest steps.
func TestResumeReportsWhatTheManagerMissed(t *testing.T) {
	const steps = 2*history.MaxRows + 76
	dir := t.TempDir()
	files, err := artifacts.OpenStore(dir, "uid")
	if err != nil {
		t.Fatal(err)
	}
	lineage := rl.Lineage{}
	want := history.History{}
	number := int64(0)
	add := func(record contract.Record) {
		number++
		record.Number = number
		want.Add("pod", []contract.Record{record})
	}
	for step := int64(1); step <= steps; step++ {
		parent := lineage
		lineage[0], lineage[1] = byte(step), byte(step>>8)
		row := artifacts.Row{
			Version: rl.Version{Step: step, Lineage: lineage}, Parent: parent, Attempt: 1, Time: 1000 + step,
			Metrics: map[string]float64{contract.MetricReward: float64(step), "other": 1},
		}
		writeQuickly(t, filepath.Join(dir, "uid", "rows", fmt.Sprintf("%09d-%s.json", step, lineage)), row)
		add(contract.Record{
			Step: step, Lineage: lineage.Short(), Attempt: 1, Time: 1000 + step,
			Metrics: map[string]float64{contract.MetricReward: float64(step)},
		})
		if step%50 == 0 {
			passed := map[string]float64{contract.MetricPassAt1: float64(step) / 1e4}
			if err := files.WriteEvaluation(artifacts.Evaluation{Version: row.Version, Digest: "p",
				Metrics: passed}); err != nil {
				t.Fatal(err)
			}
			add(contract.Record{Step: step, Lineage: lineage.Short(), Evaluation: true, Metrics: passed})
		}
	}
	r := recorder{attempt: 2, status: report.NewStatus("uid", 2, time.Now), now: time.Now}
	r.journal = artifacts.NewJournal(artifacts.Config{
		Dir: dir, RunUID: "uid", Attempt: 2, Identity: "me", Logger: slog.New(slog.DiscardHandler), Blocked: func(error) {},
		Parent: func(rl.Version) (rl.Lineage, bool) { return rl.Lineage{}, false },
	})
	if err := r.journal.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := checkpoints.Position{Version: rl.Version{Step: steps, Lineage: lineage}}
	r.resumed(at, true)
	got := history.History{}
	for receive(r.status, &got) > 0 {
	}
	want.Known = got.Known
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(history.History{})); diff != "" {
		t.Errorf("history (-all records +reported records):\n%s", diff)
	}
	r.resumed(at, false)
	if n := receive(r.status, &got); n != 1+repeated {
		t.Errorf("the second model reports %d records, want %d", n, 1+repeated)
	}
}

// writeQuickly writes a row. Unlike the store, it does not wait for the disk.
func writeQuickly(t *testing.T, name string, row artifacts.Row) {
	t.Helper()
	data, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// receive adds the records of one heartbeat to a history, and returns how many there were.
func receive(status *report.Status, to *history.History) int {
	records, _ := status.Records(contract.HeartbeatRequest{HistoryVersion: contract.HistoryVersion,
		KnownRecords: to.KnownOf("pod")})
	to.Add("pod", records)
	return len(records)
}
