// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/mlflowtest"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
)

// TestMLflowAfterLearnerDeath makes MLflow execute half of every third request and break the connection, and kills a
// learner after a step: the service has one run with the metrics of metrics.jsonl, each step once.
func TestMLflowAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	server := mlflowtest.New()
	t.Cleanup(server.Close)
	w := newFixture(t, func(file *contract.RunFile) {
		file.Evaluation.EverySteps = 1
		file.Tracking = &tracking.Settings{MLflow: &tracking.MLflow{BaseURL: server.URL, Experiment: "e", RunName: "r"}}
	})
	var requests atomic.Int64
	server.SetFault(func(string) trackertest.Fault {
		if requests.Add(1)%3 == 0 {
			return trackertest.LosePart
		}
		return trackertest.None
	})
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("retire.begun", 2)).done
	server.SetFault(nil)
	w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)

	runs := server.Runs()
	if len(runs) != 1 || runs[0].Status != "FINISHED" || runs[0].Tags["tinker-operator.uid"] != w.file.Run.UID {
		t.Fatalf("the service has the runs %v, want one that is finished", runs)
	}
	type point struct {
		Step  int64
		Value float64
	}
	got, want := map[string][]point{}, map[string][]point{}
	for _, m := range runs[0].Metrics {
		got[m.Key] = append(got[m.Key], point{m.Step, m.Value})
	}
	for _, line := range w.metrics() {
		for name, value := range line {
			if name != "step" {
				name = strings.ReplaceAll(name, "@", "_at_")
				want[name] = append(want[name], point{int64(line["step"]), value})
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics of the service (-metrics.jsonl +service):\n%s", diff)
	}
}
