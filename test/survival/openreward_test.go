// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openrewardtest"
)

// TestRolloutsAfterLearnerDeath kills learners around a commit, either before they have a key for OpenReward or while
// they send: the service has the rollouts of the committed steps alone, each once, and the weights equal the weights
// of a run that sends none.
func TestRolloutsAfterLearnerDeath(t *testing.T) {
	plain := newFixture(t, nil)
	plain.startRolloutWorker("w0")
	want := plain.outcome(plain.waitFor(plain.startLearner(1, nil), contract.CauseCompleted))
	for _, point := range []string{"step.measured", "row.written", "save.answered", "covered.sent", "retire.before"} {
		for _, sending := range []bool{false, true} {
			t.Run(fmt.Sprintf("killed at %s, sending %t", point, sending), func(t *testing.T) {
				t.Parallel()
				server := openrewardtest.New()
				t.Cleanup(server.Close)
				key := filepath.Join(t.TempDir(), "key")
				giveKey := func() {
					if err := os.WriteFile(key, []byte("key"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				w := newFixture(t, func(f *contract.RunFile) {
					f.Tracking = &tracking.Settings{OpenReward: &tracking.OpenReward{BaseURL: server.URL, RunName: "r", KeyFile: key}}
				})
				if sending {
					giveKey()
				}
				w.startRolloutWorker("w0")
				<-w.startLearner(1, w.dieAt(point, 2)).done
				giveKey()
				w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
				w.checkUploads(server, !sending)
			})
		}
	}
}

// checkUploads checks that the service has rollouts of the committed steps alone, each once. complete says that it has
// all of them: a learner that dies while it sends does not know which parts have arrived, and nothing is sent twice.
func (w *fixture) checkUploads(server *openrewardtest.Server, complete bool) {
	w.t.Helper()
	want, got := map[string]int{}, map[string]int{}
	for _, row := range w.rows() {
		want[fmt.Sprint("step ", row.Step-1)] = len(row.Manifest) * w.file.Fixed.Environments[0].GroupSize
	}
	for name, rollout := range server.Rollouts() {
		step := fmt.Sprint("step ", rollout.Other["metadata"].(map[string]any)["step"])
		got[step]++
		messages := rollout.Messages
		if len(messages) < 2 {
			if complete {
				w.t.Errorf("the rollout %s has the messages %v", name, messages)
			}
			continue
		}
		if last := messages[len(messages)-1]; last.Other["type"] != "assistant_message" || last.Other["isFinished"] != true ||
			last.Other["reward"] == nil {
			w.t.Errorf("the rollout %s ends with %v", name, last.Other)
		}
	}
	for step, count := range got {
		if complete && count != want[step] || count > want[step] {
			w.t.Errorf("the service has %d rollouts of %s, want %d", count, step, want[step])
		}
	}
	if complete {
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("rollouts by step (-want +got):\n%s", diff)
		}
	}
	for _, id := range server.Repeated() {
		w.t.Errorf("the event %s came twice", id)
	}
	for _, problem := range server.Problems() {
		w.t.Error(problem)
	}
}
