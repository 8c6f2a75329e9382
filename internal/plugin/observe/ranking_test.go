// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// swept returns runs of a sweep over group sizes and seeds. Their best reward is value, in the second of three steps.
func swept(t *testing.T) []compared {
	t.Helper()
	var runs []compared
	for i, r := range []struct {
		groupSize, seed int
		values          []float64
	}{{4, 1, []float64{0, 0.25, 0.125}}, {4, 2, []float64{0, 0.75, 0.5}}, {8, 1, []float64{0, 0.875}}, {8, 2, nil}} {
		run := newRun(fmt.Sprintf("sums-%d", i+1), func(run *v1alpha1.TrainingRun) {
			spec := fmt.Sprintf(`[{"name": "sums", "groupSize": %d}]`, r.groupSize)
			if err := json.Unmarshal([]byte(spec), &run.Spec.Environments); err != nil {
				t.Fatal(err)
			}
			run.Spec.Algorithm = &algorithm.Algorithm{Seed: int64(r.seed)}
			run.Spec.Suspend = new(r.values == nil)
		})
		h := &history.History{}
		for step, value := range r.values {
			h.Rows = append(h.Rows, history.Row{Step: int64(step + 1),
				Metrics: map[string]float64{contract.MetricReward: value, contract.MetricNLL: value}})
		}
		runs = append(runs, compared{run: *run, history: h})
	}
	return runs
}

func TestCompareRanksRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		metric string
		seeds  bool
		want   []string
	}{
		"by run": {"reward", false, []string{
			"RUN STATE STEP SEED GROUPSIZE BEST REWARD NEWEST", "sums-3 Training 15/60 1 8 0.875 0.875",
			"sums-2 Training 15/60 2 4 0.75 0.5", "sums-1 Training 15/60 1 4 0.25 0.125", "sums-4 Training 15/60 2 8  "}},
		"a metric that shall be low": {contract.MetricNLL, false, []string{
			"RUN STATE STEP SEED GROUPSIZE BEST NLL NEWEST", "sums-1 Training 15/60 1 4 0 0.125",
			"sums-2 Training 15/60 2 4 0 0.5", "sums-3 Training 15/60 1 8 0 0.875", "sums-4 Training 15/60 2 8  "}},
		"by settings": {"reward", true, []string{
			"RUN STATE STEP GROUPSIZE BEST REWARD NEWEST DEVIATION RUNS",
			"sums-3 sums-4 Training 15/60 15/60 8 0.875 0.875  1 of 2",
			"sums-1 sums-2 Training 15/60 15/60 4 0.5 0.3125 0.3536 2 of 2"}},
	} {
		result, err := rank(swept(t), tc.metric, tc.seeds)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{strings.Join(result.Header, " ")}
		for _, row := range result.Rows {
			got = append(got, strings.Join(row, " "))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := rank(swept(t), "rewrd", false); err == nil || !strings.Contains(err.Error(), "did you mean reward?") {
		t.Errorf("a metric that does not exist: %v", err)
	}
}

func TestCompareDrawsRunsTogether(t *testing.T) {
	var out bytes.Buffer
	if err := drawTogether(cli.IO{Stdout: &out}, swept(t), []string{"reward"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reward\n", "steps 1 to 3\n", "a  sums-1: 0.125 at step 3\n",
		"c  sums-3: 0.875 at step 2\n", "ccc"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plot lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "sums-4") {
		t.Errorf("the plot has a run without steps:\n%s", out.String())
	}
	if err := drawTogether(cli.IO{Stdout: &out}, swept(t)[:1], []string{"rewrd"}); err == nil {
		t.Error("a metric that does not exist is drawn")
	}
}
