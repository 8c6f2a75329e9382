// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

// recordHistory polls a learner at an interval until it ends, as the manager does, and adds its reports to a history.
func (w *fixture) recordHistory(a *attempt, number int32, every time.Duration, h *history.History) {
	source := fmt.Sprint("pod-", number)
	for {
		request := contract.HeartbeatRequest{
			RunUID: w.file.Run.UID, Attempt: number, Desired: contract.DesiredRun, HistoryVersion: contract.HistoryVersion,
			KnownRecords: h.KnownOf(source),
		}
		if reply, err := w.post(a, request); err == nil {
			h.Add(source, reply.Records)
		}
		select {
		case <-a.done:
			return
		case <-time.After(every):
		}
	}
}

// TestHistoryAfterLearnerDeath kills a learner before or after a step is committed: the history has each step that
// counts once, with the figures of metrics.jsonl, and the evaluations.
func TestHistoryAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"row.written", "claim.looked", "retire.before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.startWorker("w0", behavior{})
			var h history.History
			first := w.startLearner(1, w.dieAt(point, 2))
			w.recordHistory(first, 1, 20*time.Millisecond, &h)
			second := w.startLearner(2, nil)
			w.recordHistory(second, 2, 20*time.Millisecond, &h)
			w.waitFor(second, contract.CauseCompleted)

			want := map[int64]float64{}
			for i, line := range w.timelessMetrics() {
				if reward, ok := line[contract.MetricReward]; ok {
					want[int64(i)+1] = reward
				}
			}
			got, evaluated := map[int64]float64{}, []int64{}
			for _, row := range h.Rows {
				if reward, ok := row.Metrics[contract.MetricReward]; ok {
					got[row.Step] = reward
				}
				if row.Evaluated() {
					evaluated = append(evaluated, row.Step)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) != 3 {
				t.Errorf("rewards by step (-metrics.jsonl +history):\n%s", diff)
			}
			if diff := cmp.Diff([]int64{0, 3}, evaluated); diff != "" {
				t.Errorf("evaluated versions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHistoryWithoutArtifacts polls seldom: a learner that ends waits until its last steps are stored.
func TestHistoryWithoutArtifacts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(file *contract.RunFile) { file.ArtifactsDir = "" })
	w.startWorker("w0", behavior{})
	var h history.History
	a := w.startLearner(1, nil)
	w.recordHistory(a, 1, 500*time.Millisecond, &h)
	w.waitFor(a, contract.CauseCompleted)
	var steps []int64
	for _, row := range h.Rows {
		steps = append(steps, row.Step)
	}
	if diff := cmp.Diff([]int64{0, 1, 2, 3}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
