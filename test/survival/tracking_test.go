// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/wandbtest"
)

// trackedFixture is a run that is evaluated at each version and recorded by a server.
func trackedFixture(t *testing.T, change func(*contract.RunFile)) (*fixture, *wandbtest.Server) {
	t.Helper()
	server := wandbtest.New()
	t.Cleanup(server.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newFixture(t, func(file *contract.RunFile) {
		file.Evaluation.EverySteps = 1
		file.Tracking = &tracking.Settings{WandB: &tracking.WandB{
			BaseURL: server.URL, Project: "p", RunName: "r", KeyFile: key,
		}}
		if change != nil {
			change(file)
		}
	})
	return w, server
}

// checkTracked checks that the service has the metrics of metrics.jsonl, each step once and in order.
func (w *fixture) checkTracked(server *wandbtest.Server) {
	w.t.Helper()
	var got []map[string]float64
	for _, line := range server.History(w.file.Run.UID) {
		values := map[string]float64{"step": line["_step"].(float64)}
		for name, value := range line {
			if !strings.HasPrefix(name, "_") {
				values[name] = value.(float64)
			}
		}
		got = append(got, values)
	}
	if diff := cmp.Diff(w.metrics(), got); diff != "" {
		w.t.Errorf("metrics of the service (-metrics.jsonl +service):\n%s", diff)
	}
}

// TestTrackingAfterLearnerDeath kills a learner at a fault point, while the service works or does not answer.
func TestTrackingAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		point string
		away  bool
	}{
		"before the state is saved":              {"step.measured", true},
		"when the state is saved":                {"save.answered", false},
		"behind the step, in the service's turn": {"retire.begun", false},
		"behind the step, without the service":   {"retire.begun", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := trackedFixture(t, nil)
			if tc.away {
				server.SetFault(func(string) trackertest.Fault { return trackertest.Refuse })
			}
			w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt(tc.point, 2)).done
			server.SetFault(nil)
			w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			w.checkTracked(server)
		})
	}
}

// TestTrackingBehindLostAnswers loses every second answer of the service to requests that send lines.
func TestTrackingBehindLostAnswers(t *testing.T) {
	t.Parallel()
	w, server := trackedFixture(t, nil)
	var mu sync.Mutex
	streams := 0
	server.SetFault(func(path string) trackertest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(path, "/file_stream") {
			if streams++; streams%2 == 1 {
				return trackertest.LoseAnswer
			}
		}
		return trackertest.None
	})
	w.startWorker("w0", behavior{})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	w.checkTracked(server)
}

// TestTrackingNeverEndsARun gives a run a key that the service refuses: the run completes, and reports why nothing is
// recorded.
func TestTrackingNeverEndsARun(t *testing.T) {
	t.Parallel()
	w, server := trackedFixture(t, nil)
	w.trackingPatience = 5 * time.Second
	server.Key = "another"
	w.startWorker("w0", behavior{})
	reported := make(chan contract.HeartbeatReply, 1)
	a := w.startLearner(1, nil)
	go func() {
		for {
			reply, err := w.post(a, contract.HeartbeatRequest{RunUID: w.file.Run.UID, Attempt: 1, Desired: contract.DesiredRun})
			if err == nil && len(reply.Tracking) > 0 && reply.Tracking[0].Reason != "Connecting" {
				reported <- reply
				return
			}
			select {
			case <-a.done:
				close(reported)
				return
			default:
			}
		}
	}()
	verdict := w.waitFor(a, contract.CauseCompleted)
	if verdict.Progress.Step != 3 {
		t.Errorf("the run has made %d steps", verdict.Progress.Step)
	}
	reply, ok := <-reported
	if !ok || reply.Tracking[0].Service != "wandb" || reply.Tracking[0].Reason != "TrackerKeyRefused" {
		t.Errorf("the learner reports %v", reply.Tracking)
	}
	if lines := server.History(w.file.Run.UID); len(lines) > 0 {
		t.Errorf("the service has %d lines", len(lines))
	}
}

// TestTrackingWithoutArtifacts records a run whose rows are in the learner's memory alone.
func TestTrackingWithoutArtifacts(t *testing.T) {
	t.Parallel()
	w, server := trackedFixture(t, func(file *contract.RunFile) { file.ArtifactsDir = "" })
	w.startWorker("w0", behavior{})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	var steps []float64
	for _, line := range server.History(w.file.Run.UID) {
		steps = append(steps, line["_step"].(float64))
	}
	if diff := cmp.Diff([]float64{0, 1, 2, 3}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
