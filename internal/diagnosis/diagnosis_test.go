// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

// rowsOf returns n rows with the metrics of steps that learn; change may alter the metrics of step i, from 0.
func rowsOf(n int, change func(i int, metrics map[string]float64)) []history.Row {
	rows := make([]history.Row, n)
	for i := range rows {
		metrics := map[string]float64{
			metricReward: 0.3 + 0.5*float64(i)/float64(n), metricMixed: 0.8, metricAllBad: 0.1, metricAllGood: 0.1,
			contract.MetricEntropy: 0.5, contract.MetricKLSampleTrain: 0.001, metricGradientNorm: 1,
		}
		if change != nil {
			change(i, metrics)
		}
		rows[i] = history.Row{Step: int64(i + 1), Metrics: metrics}
	}
	return rows
}

func set(values map[string]float64) func(int, map[string]float64) {
	return func(_ int, metrics map[string]float64) { maps.Copy(metrics, values) }
}

// ignoring returns the metrics of a step in which agents asked for options, as the history records them.
func ignoring(names ...string) map[string]float64 {
	metrics := map[string]float64{contract.MetricOptionsIgnored: float64(len(names))}
	for _, name := range names {
		metrics[contract.PrefixIgnored+name] = 1
	}
	return contract.RecordMetrics(metrics)
}

func TestOf(t *testing.T) {
	held := func(value, low, high float64) map[string]float64 {
		return map[string]float64{"test/pass@1": value, "test/pass@1" + suffixLow: low, "test/pass@1" + suffixHigh: high}
	}
	for name, tc := range map[string]struct {
		rows []history.Row
		want []Cause
	}{
		"nothing": {nil, nil},
		"an option of agents is ignored": {rowsOf(10, func(i int, m map[string]float64) {
			if i == 2 {
				maps.Copy(m, ignoring("response_format"))
			}
		}), []Cause{OptionsIgnored}},
		"a metric of somebody else": {rowsOf(10, set(map[string]float64{contract.PrefixIgnored + "words": 1})), nil},
		"a policy learns":           {rowsOf(40, nil), nil},
		"a policy is ready": {rowsOf(40, func(i int, m map[string]float64) {
			if i > 10 {
				maps.Copy(m, map[string]float64{metricReward: 1, metricMixed: 0, metricAllGood: 1, metricAllBad: 0,
					contract.MetricEntropy: 0})
			}
		}), nil},
		"faults of one environment": {rowsOf(10, set(map[string]float64{"env/all/fault_ratio": 0.1, "env/a/fault_ratio": 0.2,
			"env/b/fault_ratio": 0})), []Cause{EpisodesFault}},
		"few faults":   {rowsOf(10, set(map[string]float64{"env/all/fault_ratio": 0.04})), nil},
		"cut replies":  {rowsOf(10, set(map[string]float64{metricCut: 0.5})), []Cause{RepliesCut}},
		"few are cut":  {rowsOf(10, set(map[string]float64{metricCut: 0.49})), nil},
		"wrong format": {rowsOf(10, set(map[string]float64{metricMalformed: 0.3})), []Cause{CallsMalformed}},
		"no gradient from the first step on": {rowsOf(5, set(map[string]float64{metricMixed: 0, metricReward: 1,
			metricAllGood: 1})), []Cause{NoGradient}},
		"too few steps": {rowsOf(4, set(map[string]float64{metricMixed: 0})), nil},
		"a reward of 0": {rowsOf(20, set(map[string]float64{metricMixed: 0, metricReward: 0, metricAllBad: 1,
			metricAllGood: 0})), []Cause{NoGradient, RewardUnchanged}},
		"collapse": {rowsOf(10, set(map[string]float64{contract.MetricEntropy: 0.001, metricAllBad: 0.7})),
			[]Cause{EntropyCollapsed}},
		"certain and right": {rowsOf(10, set(map[string]float64{contract.MetricEntropy: 0.001})), nil},
		"sampler and trainer": {rowsOf(10, set(map[string]float64{contract.MetricKLSampleTrain: -0.2})),
			[]Cause{SamplerDiffers}},
		"clipping":           {rowsOf(10, set(map[string]float64{metricGradientNorm: 6})), []Cause{GradientClipped}},
		"clipping by little": {rowsOf(10, set(map[string]float64{metricGradientNorm: 4})), nil},
		"a fall": {rowsOf(40, func(i int, m map[string]float64) {
			if i >= 20 {
				m[metricReward] = 0.01
			}
		}), []Cause{RewardFell, RewardUnchanged}},
		"a fall after the first step": {rowsOf(10, func(i int, m map[string]float64) {
			m[metricReward] = 0
			if i == 0 {
				m[metricReward] = 0.4
			}
		}), []Cause{RewardFell}},
		"noise without a trend": {rowsOf(40, func(i int, m map[string]float64) {
			m[metricReward] = 0.3 + 0.05*math.Sin(float64(7*i))
		}), []Cause{RewardUnchanged}},
		"held-out tasks fall": {rowsOf(20, func(i int, m map[string]float64) {
			switch i {
			case 5:
				maps.Copy(m, held(0.8, 0.7, 0.9))
			case 19:
				maps.Copy(m, held(0.5, 0.4, 0.6))
			}
		}), []Cause{HeldOutFalls}},
		"held-out tasks fall within their interval": {rowsOf(20, func(i int, m map[string]float64) {
			switch i {
			case 5:
				maps.Copy(m, held(0.6, 0.5, 0.7))
			case 19:
				maps.Copy(m, held(0.5, 0.4, 0.6))
			}
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := Of(tc.rows, Settings{GradClipNorm: 0.5})
			var got []Cause
			for _, f := range found {
				got = append(got, f.Cause)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Of() finds (-want +got):\n%s%v", diff, found)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	rows := rowsOf(10, set(map[string]float64{"env/all/fault_ratio": 0.1, "env/a/fault_ratio": 0.2}))
	want := `20% of the episodes of environment "a" end with a fault (mean of 10 steps), and are not trained on.`
	if got := Of(rows, Settings{}); len(got) != 1 || got[0].Message != want {
		t.Errorf("Of() = %v, want the message %q", got, want)
	}
}

// TestOptionsIgnored checks that the names are bounded, because an untrusted environment could choose them.
func TestOptionsIgnored(t *testing.T) {
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf("b%02d", i)
	}
	for want, metrics := range map[string]map[string]float64{
		"Agents ask for response_format and tool_choice, which the gateway does not have, and are answered " +
			"without.": ignoring("tool_choice", "response_format"),
		"Agents ask for b00, b01, b02, b03, b04 and 15 more, which the gateway does not have, and are answered " +
			"without.": ignoring(names...),
		`Agents ask for "a\n` + strings.Repeat("x", 38) + `", which the gateway does not have, and are answered ` +
			"without.": ignoring("a\n" + strings.Repeat("x", 60)),
	} {
		if got := Of(rowsOf(1, set(metrics)), Settings{}); len(got) != 1 || got[0].Message != want {
			t.Errorf("Of() = %v, want the message %q", got, want)
		}
	}
}

// TestRises compares with S and its variance, computed by hand as R. O. Gilbert describes in Statistical Methods for
// Environmental Pollution Monitoring, 1987, section 16.4.
func TestRises(t *testing.T) {
	row := func(values ...float64) []history.Row {
		rows := make([]history.Row, len(values))
		for i, v := range values {
			rows[i] = history.Row{Metrics: map[string]float64{"m": v}}
		}
		return rows
	}
	for name, tc := range map[string]struct {
		rows []history.Row
		want float64
	}{
		// S = 6, and the variance is 4*3*13/18.
		"always":     {row(1, 2, 3, 4), 5 / math.Sqrt(4*3*13/18.0)},
		"never":      {row(4, 3, 2, 1), -5 / math.Sqrt(4*3*13/18.0)},
		"all equal":  {row(1, 1, 1, 1), 0},
		"with a tie": {row(1, 2, 2, 3), 4 / math.Sqrt((4*3*13-2*1*9)/18.0)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rises(tc.rows, "m"); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rises() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDocumentedCauses(t *testing.T) {
	page, err := os.ReadFile("../../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range Causes() {
		if !strings.Contains(string(page), "| `"+string(cause)+"` |") {
			t.Errorf("docs/observing.md has no row of %s", cause)
		}
		if RepairOf(cause) == "" {
			t.Errorf("%s has no repair", cause)
		}
	}
}
