// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// TestHistoryOfArtifacts reads the lines of two batches, and the evaluations before the first and after the second.
func TestHistoryOfArtifacts(t *testing.T) {
	lineage := strings.Repeat("0", 64)
	h, err := historyOf(delivery.Delivery{
		Metrics: []json.RawMessage{
			[]byte(`{"step":0,"optim/lr":0.1,"env/all/stop/length":0.5}`), []byte(`{"step":1,"optim/lr":0.2}`)},
		Evaluations: []json.RawMessage{
			[]byte(`{"step":0,"lineage":"` + lineage + `","metrics":{"test/pass@1":0.25}}`),
			[]byte(`{"step":2,"lineage":"` + lineage + `","metrics":{"test/pass@1":0.75,"test/pass@1/ci95_low":0.5}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []history.Row
	for _, row := range h.Rows {
		got = append(got, history.Row{Step: row.Step, Metrics: row.Metrics})
	}
	want := []history.Row{
		{Step: 0, Metrics: map[string]float64{"test/pass@1": 0.25}},
		{Step: 1, Metrics: map[string]float64{"optim/lr": 0.1, "env/all/stop/length": 0.5}},
		{Step: 2, Metrics: map[string]float64{"optim/lr": 0.2, "test/pass@1": 0.75, "test/pass@1/ci95_low": 0.5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	format := output.Plain
	if err := (metricsFlags{all: true, format: &format}).describe(cli.IO{Stdout: &out}, h); err != nil {
		t.Fatal(err)
	}
	wantText := "METRIC\tNEWEST\tSTEP\tUNIT\tMEANING\n" +
		"env/all/stop/length\t0.5\t1\tshare\tShare of episodes that ended because maxTokens cut the reply.\n" +
		"optim/lr\t0.2\t2\trate\tLearning rate of the step.\n" +
		"test/pass@1\t0.75\t2\tshare\tEstimated share of held-out tasks that at least one of K samples solves, for " +
		"environments that all have this K. The unbiased estimator of Chen et al., 2021.\n" +
		"test/pass@1/ci95_low\t0.5\t2\tshare\tLower end of the 95% confidence interval of test/pass@1.\n"
	if diff := cmp.Diff(wantText, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
