// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/tfevents"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// withTensorBoard lets a run write event files.
func withTensorBoard(file *contract.RunFile) {
	file.Tracking = &tracking.Settings{TensorBoard: &tracking.TensorBoard{RunName: "r"}}
}

// eventFiles returns the records of the event files, in the order of the files' names, and the names of files that end
// in a part of a record.
func (w *fixture) eventFiles() (records []map[string]float32, cut []string) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "tensorboard/r", tfevents.Prefix+"*"))
	if err != nil {
		w.t.Error(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Error(err)
		}
		found, valid := tfevents.Decode(data)
		if valid != len(data) {
			cut = append(cut, filepath.Base(name))
		}
		for _, r := range found {
			r.Scalars["step"] = float32(r.Step)
			records = append(records, r.Scalars)
		}
	}
	return records, cut
}

// checkTensorBoard checks that the event files have the metrics of metrics.jsonl, each step once and in order.
func (w *fixture) checkTensorBoard() {
	w.t.Helper()
	var want []map[string]float32
	for _, line := range w.metrics() {
		values := map[string]float32{}
		for name, value := range line {
			values[name] = float32(value)
		}
		want = append(want, values)
	}
	got, cut := w.eventFiles()
	if diff := cmp.Diff(want, got); diff != "" || len(cut) > 0 {
		w.t.Errorf("the event files, with the cut ones %q (-metrics.jsonl +files):\n%s", cut, diff)
	}
}

// TestTensorBoardAfterReturnToEarlierStep loses the newest state, so that a step whose line was written is made again,
// by the same learner or the next.
func TestTensorBoardAfterReturnToEarlierStep(t *testing.T) {
	for name, dies := range map[string]bool{"in the same learner": false, "in the next learner": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withTensorBoard)
			w.startWorker("w0", behavior{})
			var lost []map[string]float32
			lose := sync.OnceFunc(func() {
				w.addFaults(fault.Rule{Op: "load_weights", Name: "s000002", Do: fault.Missing, Count: -1})
			})
			// Step 3 is sampled while the save of state 2 may have no reply, so that the line of step 2 cannot be awaited there.
			events := w.at("retire.begun", 2, func(_ context.Context, kill func() error, _ string, _ int64) error {
				if lost != nil {
					return nil
				}
				w.until("the line of step 2 is written", func() bool {
					lost, _ = w.eventFiles()
					return len(lost) == 2
				})
				if !dies {
					return nil
				}
				lose()
				return kill()
			})
			if !dies {
				fail := sync.OnceFunc(func() {
					lose()
					w.addFaults(fault.Rule{Op: "forward_backward", Do: fault.Fail, Category: "server"})
				})
				events = inOrder(events, w.at("step.sampled", 3, func(context.Context, func() error, string, int64) error {
					fail()
					return nil
				}))
			}
			first := w.startLearner(1, events)
			if dies {
				<-first.done
				first = w.startLearner(2, nil)
			}
			w.checkSame(w.waitFor(first, contract.CauseCompleted))
			w.checkTensorBoard()
			if got, _ := w.eventFiles(); cmp.Equal(lost[1], got[1]) {
				t.Error("the step was not made again")
			}
		})
	}
}
