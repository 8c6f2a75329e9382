// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestBoundedReply checks that the reply of a learner, which may have any image, is reduced to the bytes that the
// manager reads.
func TestBoundedReply(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	many := map[string]float64{MetricReward: 0.5}
	for i := range 5500 {
		many[fmt.Sprintf("test/%d", i)] = 1
	}
	reply := HeartbeatReply{
		RunUID: "uid", Attempt: 1, Waiting: long,
		Progress: Progress{Phase: PhaseTraining, Lineage: long, Metrics: many,
			Capabilities: &Capabilities{Supported: make([]string, 1000)}},
	}
	for range 200 {
		reply.Problems = append(reply.Problems, problem.Problem{Code: problem.Code(long), Evidence: long})
	}
	for n := range int64(MaxRecords + 2) {
		reply.Records = append(reply.Records, Record{Number: n + 1, Step: n + 1, Lineage: "l", Metrics: many})
		reply.Unavailable = append(reply.Unavailable, UnavailableEnvironment{Name: long, Problem: long})
		reply.Progress.Checkpoints = append(reply.Progress.Checkpoints, Checkpoint{Step: n})
		reply.Progress.Environments = append(reply.Progress.Environments,
			EnvironmentMetrics{Evaluation: make([]Estimate, 100)})
	}
	reply.Records[1].Lineage = long
	reply.Records[2].Metrics = map[string]float64{long: 1, MetricReward: 0.5}
	got, excess := reply.Bounded()
	data, err := json.Marshal(got)
	if err != nil || len(data) > 1<<20 {
		t.Errorf("the reply still has %d bytes (%v)", len(data), err)
	}
	if len(got.Records) != MaxRecords || len(got.Records[0].Metrics) != MaxRecordMetrics ||
		got.Records[0].Metrics[MetricReward] != 0.5 {
		t.Errorf("%d records are kept, the first with %d metrics", len(got.Records), len(got.Records[0].Metrics))
	}
	if r := got.Records[1]; r.Lineage != "" || len(r.Metrics) != 0 || r.Number != 2 {
		t.Errorf("the record with a long lineage becomes %+v", r)
	}
	if diff := cmp.Diff(map[string]float64{MetricReward: 0.5}, got.Records[2].Metrics); diff != "" {
		t.Errorf("metrics of the record with a long name (-want +got):\n%s", diff)
	}
	if len(got.Progress.Metrics) != 1 || len(got.Progress.Checkpoints) != 16 ||
		len(got.Progress.Environments[0].Evaluation) != MaxEstimates {
		t.Errorf("the progress keeps %d metrics, %d checkpoints", len(got.Progress.Metrics), len(got.Progress.Checkpoints))
	}
	for _, want := range []string{"2 records of 130", "metrics of records", "checkpoints", "supported features",
		"unavailable environments"} {
		if !strings.Contains(excess, want) {
			t.Errorf("the message about omitted parts is %q, which lacks %q", excess, want)
		}
	}
	if again, excess := got.Bounded(); excess != "" || !cmp.Equal(again, got) {
		t.Errorf("a reply that is bounded leaves out %q", excess)
	}
}

// TestRepliesHaveNoEndingsOfAttempts checks that problems that end attempts are left out: no condition of a run shows
// them.
func TestRepliesHaveNoEndingsOfAttempts(t *testing.T) {
	got, excess := HeartbeatReply{Problems: []problem.Problem{{Code: problem.StopRequested}, {Code: problem.Throttled},
		{Code: problem.Superseded}}}.Bounded()
	if diff := cmp.Diff([]problem.Problem{{Code: problem.Throttled}}, got.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if want := "2 problems that end attempts"; excess != want {
		t.Errorf("excess is %q, want %q", excess, want)
	}
}
