// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestSetKeepsCodes sets conditions that show problems: each has its code, a condition with a code as its reason has
// that code, and a condition that no longer shows a problem has none.
func TestSetKeepsCodes(t *testing.T) {
	var conditions []metav1.Condition
	var codes []v1alpha1.ConditionCode
	want := func(step string, want ...v1alpha1.ConditionCode) {
		t.Helper()
		if diff := cmp.Diff(want, codes, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: codes (-want +got):\n%s", step, diff)
		}
	}
	missing := Show("PodsReady", metav1.ConditionFalse, problem.Problem{Code: problem.SecretNotFound})
	Set(&conditions, &codes, 1, now, missing)
	Set(&conditions, &codes, 1, now, missing.As("Accepted", metav1.ConditionFalse))
	want("a problem", v1alpha1.ConditionCode{Condition: "Accepted", Code: "SecretNotFound"},
		v1alpha1.ConditionCode{Condition: "PodsReady", Code: "SecretNotFound"})
	if c := Find(conditions, codes, "PodsReady"); c.Reason != "ObjectNotFound" || c.Code != problem.SecretNotFound {
		t.Errorf("PodsReady has the reason %s and the code %s, want ObjectNotFound, SecretNotFound", c.Reason, c.Code)
	}
	Set(&conditions, &codes, 1, now, False("PodsReady", "CreateRefused", "m"))
	Set(&conditions, &codes, 1, now, True("Accepted", "Accepted", "m"))
	want("a reason that is a code", v1alpha1.ConditionCode{Condition: "PodsReady", Code: "CreateRefused"})
	Set(&conditions, &codes, 1, now, True("PodsReady", "Running", "m"))
	want("no problem")
}

func TestSet(t *testing.T) {
	var conditions []metav1.Condition
	var codes []v1alpha1.ConditionCode
	Set(&conditions, &codes, 1, now, Unknown("Ready", "Probing", "one\nline"))
	Set(&conditions, &codes, 1, now.Add(time.Minute), Unknown("Ready", "Waiting", strings.Repeat("é", 600)))
	c := conditions[0]
	if !c.LastTransitionTime.Time.Equal(now) {
		t.Errorf("the transition time is %v, want %v: the reason alone changed", c.LastTransitionTime, now)
	}
	if c.Reason != "Waiting" || len(c.Message) > maxConditionMessage || strings.ContainsRune(c.Message, '\ufffd') {
		t.Errorf("condition = %+v", c)
	}
	if at, ok := Since(conditions, "Ready", metav1.ConditionUnknown); !ok || !at.Equal(now) {
		t.Errorf("Since = %v, %v", at, ok)
	}
	Set(&conditions, &codes, 2, now.Add(time.Hour), True("Ready", "Done", "m"))
	if !IsTrue(conditions, "Ready") || !conditions[0].LastTransitionTime.Time.Equal(now.Add(time.Hour)) ||
		conditions[0].ObservedGeneration != 2 {
		t.Errorf("condition = %+v", conditions[0])
	}
	if _, ok := Since(conditions, "Ready", metav1.ConditionUnknown); ok {
		t.Error("Since knows a status that the condition has not")
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float64]float64{
		0.712549: 0.7125, 0.78125: 0.7812, -12.40004: -12.4, 0.00210349: 0.002103, 18234.56: 18230, 0: 0, 1: 1,
		math.Inf(1): 0, 99999: 100000,
	} {
		if got := Round(in); got != want {
			t.Errorf("Round(%v) = %v, want %v", in, got, want)
		}
	}
	if got := Round(math.NaN()); got != 0 {
		t.Errorf("Round(NaN) = %v, want 0", got)
	}
}

func TestReport(t *testing.T) {
	start := metav1.NewTime(now.Add(-100 * time.Second))
	next := v1alpha1.TrainingRunStatus{
		StartTime:    &start,
		Environments: []v1alpha1.EnvironmentStatus{{Name: "a", Digest: "d"}},
		Metrics:      []v1alpha1.MetricValue{{Name: contract.MetricPassAt1, Value: 0.5}},
	}
	Report(&next, contract.Progress{
		Phase: contract.PhaseTraining, Step: 20, Steps: 60, Cursor: 640, Lineage: strings.Repeat("ab", 32),
		EvaluatedStep:   new(int64(16)),
		Metrics:         map[string]float64{"env/all/reward/total": 0.712549, "optim/entropy": math.NaN(), "other": 1},
		TrainingSeconds: 80,
		Usage:           contract.Usage{SampledTokens: 5},
		Environments: []contract.EnvironmentMetrics{{Name: "a", Reward: new(0.123456), Evaluation: []contract.Estimate{
			{Name: "pass@1", Value: 0.123456, Low: new(0.1), High: new(0.23456)}, {Name: "judge_acc", Value: 0.5},
			{Name: "judge_acc", Value: 0.6},
			{Name: strings.Repeat("x", 129)},
		}}, {Name: "unknown", Reward: new(1.0)}},
		Best: &contract.Checkpoint{Step: 10, State: "best", Metric: "test/pass@1", Value: new(0.99999)},
		Checkpoints: []contract.Checkpoint{
			{Step: 20, State: "s20", Sampler: "p20", Lineage: strings.Repeat("ab", 32), Attempt: 2,
				SaveTime: "2026-11-21T11:59:00.5+00:00"},
			{Step: 19, State: strings.Repeat("x", 2000)},
			{Step: 18, State: "s18", ExpirationTime: "soon"},
			{Step: 17},
		},
	}, now)
	saved := metav1.NewTime(time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC))
	want := v1alpha1.TrainingRunStatus{
		StartTime: &start,
		Step:      new(int64(20)), Steps: new(int64(60)),
		Metrics: []v1alpha1.MetricValue{{Name: contract.MetricPassAt1, Value: 0.5},
			{Name: contract.MetricReward, Value: 0.7125}},
		Evaluation:       &v1alpha1.EvaluationStatus{Step: 16},
		LatestCheckpoint: "s20", BestCheckpoint: "best",
		Checkpoints: []v1alpha1.Checkpoint{
			{Name: "s20", Step: 20, State: "s20", Sampler: "p20", Lineage: "ababababab", Attempt: new(int32(2)),
				SaveTime: &saved},
			{Name: "s18", Step: 18, State: "s18"},
			{Name: "best", Step: 10, State: "best", Metric: "test/pass@1", Value: new(1.0)},
		},
		Usage: &v1alpha1.Usage{PromptTokens: new(int64(0)), SampledTokens: new(int64(5)),
			TrainedTokens: new(int64(0)), BoughtTwiceTokens: new(int64(0))},
		EffectiveTrainingRatio: new(0.8),
		Environments: []v1alpha1.EnvironmentStatus{{Name: "a", Digest: "d", Reward: new(0.1235),
			Evaluation: []v1alpha1.Estimate{
				{Name: "pass@1", Value: 0.1235, Low: new(0.1), High: new(0.2346)}, {Name: "judge_acc", Value: 0.5},
			}}},
	}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestReportOfALearnerThatOpens(t *testing.T) {
	next := v1alpha1.TrainingRunStatus{Step: new(int64(30)), Steps: new(int64(60))}
	Report(&next, contract.Progress{Phase: contract.PhaseOpening, Steps: 60}, now)
	if got := Steps(&next); got != "30/60" {
		t.Errorf("a learner that has loaded nothing yet set the step to %s, want 30/60", got)
	}
}

// TestCapabilitiesRoundTrip passes a learner's findings through the status to the next run file.
func TestCapabilitiesRoundTrip(t *testing.T) {
	own := contract.Capabilities{
		BaseURL: "u", Model: "m", Supported: []string{"seed"}, Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"},
		CheckedAt: "2026-11-23T12:00:00Z", ClientVersion: "v1", Connection: "c",
	}
	shared := own
	shared.CheckedAt, shared.SharedFrom = "", &contract.SharedCheck{Name: "first", CheckedAt: "2026-11-23T11:00:00Z"}
	for name, found := range map[string]contract.Capabilities{"of its own": own, "of another run": shared} {
		var next v1alpha1.TrainingRunStatus
		Report(&next, contract.Progress{Capabilities: &found}, now)
		if diff := cmp.Diff(found, *Capabilities(next.Capabilities)); diff != "" {
			t.Errorf("a check %s changed on its way (-found +got):\n%s", name, diff)
		}
	}
}

func TestReportOfCapabilities(t *testing.T) {
	long := make([]string, 100)
	for i := range long {
		long[i] = fmt.Sprintf("f%03d", i)
	}
	cases := map[string]struct{ reported, want []string }{
		"sorted, each once":                 {[]string{"b", "a", "b"}, []string{"a", "b"}},
		"without what the CRD would refuse": {[]string{strings.Repeat("x", 65), "a"}, []string{"a"}},
		"no more than the CRD has room for": {long, long[:64]},
		"none, where none are reported":     {nil, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var next v1alpha1.TrainingRunStatus
			Report(&next, contract.Progress{Capabilities: &contract.Capabilities{BaseURL: "u", Model: "m",
				Ignored: tc.reported}}, now)
			if diff := cmp.Diff(tc.want, next.Capabilities.Ignored, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
			Report(&next, contract.Progress{}, now)
			if next.Capabilities == nil || next.Capabilities.Model != "m" {
				t.Errorf("after a report without capabilities they are %+v, want the capabilities of m", next.Capabilities)
			}
			for _, name := range tc.want {
				if !Lacks(next.Capabilities, name) {
					t.Errorf("Lacks does not find %s", name)
				}
			}
		})
	}
}

func TestReportKeepsTheBestCheckpointWhateverItsAge(t *testing.T) {
	reported := func(step int64) contract.Checkpoint {
		return contract.Checkpoint{Step: step, State: fmt.Sprintf("tinker://m/weights/%d", step)}
	}
	best := reported(3)
	best.Metric, best.Value = "test/pass@1", new(0.5)
	var next v1alpha1.TrainingRunStatus
	Report(&next, contract.Progress{Checkpoints: []contract.Checkpoint{reported(3)}, Best: &best}, now)
	if c := Best(&next); c == nil || c != Latest(&next) || c.Value == nil || len(next.Checkpoints) != 1 {
		t.Errorf("the newest and best checkpoint is %+v of %+v, want one entry with its value", c, next.Checkpoints)
	}
	var all []contract.Checkpoint
	for step := int64(40); step > 20; step-- {
		all = append(all, reported(step), reported(step))
	}
	for range 2 {
		Report(&next, contract.Progress{Checkpoints: all}, now)
	}
	var names []string
	for _, c := range next.Checkpoints {
		names = append(names, c.Name)
	}
	want := strings.Fields("40 39 38 37 36 35 34 33 32 31 30 29 28 27 26 3")
	if diff := cmp.Diff(want, names); diff != "" || next.LatestCheckpoint != "40" || next.BestCheckpoint != "3" {
		t.Errorf("latest %q, best %q, names (-want +got):\n%s", next.LatestCheckpoint, next.BestCheckpoint, diff)
	}
}

func TestKeepOlder(t *testing.T) {
	list := func(steps ...int64) []v1alpha1.Checkpoint {
		var all []v1alpha1.Checkpoint
		for _, step := range steps {
			all = append(all, v1alpha1.Checkpoint{Name: fmt.Sprint(step), Step: step})
		}
		return all
	}
	cases := map[string]struct{ now, former, want []v1alpha1.Checkpoint }{
		"the best is not the oldest that is reported": {list(60, 3), list(59, 58, 3), list(60, 59, 58, 3)},
		"what is older stays":                         {list(60), list(59, 58), list(60, 59, 58)},
		"what is newer or the same is reported":       {list(60, 58), list(61, 60, 59, 58, 40), list(60, 58, 40)},
		"nothing reported is nothing new":             {nil, list(3), nil},
		"sixteen at most": {list(20), list(19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4),
			list(20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := v1alpha1.TrainingRunStatus{Checkpoints: tc.now, BestCheckpoint: "3"}
			var reported []contract.Checkpoint
			for _, c := range tc.now {
				if c.Name != next.BestCheckpoint {
					reported = append(reported, contract.Checkpoint{Step: c.Step})
				}
			}
			KeepOlder(&next, tc.former, reported)
			if diff := cmp.Diff(tc.want, next.Checkpoints); diff != "" {
				t.Errorf("checkpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFit(t *testing.T) {
	path := func(i int) string {
		return fmt.Sprintf("tinker://%s/weights/%s%02d", strings.Repeat("m", 300), strings.Repeat("n", 700), i)
	}
	var next v1alpha1.TrainingRunStatus
	for i := range 16 {
		next.Checkpoints = append(next.Checkpoints, v1alpha1.Checkpoint{Name: fmt.Sprint(16 - i),
			Step: int64(16 - i), State: path(i)})
	}
	for i := range 10 {
		next.Attempts = append(next.Attempts, v1alpha1.Attempt{Number: int32(10 - i), Message: strings.Repeat("x", 256)})
	}
	next.Checkpoints[0].Sampler, next.LatestCheckpoint, next.BestCheckpoint = path(0), "16", "1"
	Fit(&next)
	if got := size(&next); got > MaxBytes {
		t.Errorf("status has %d bytes, at most %d are meant", got, MaxBytes)
	}
	if Latest(&next) == nil || Best(&next) == nil || next.Attempts[0].Message == "" || len(next.Attempts) != 10 ||
		len(next.Checkpoints) < 8 {
		t.Errorf("Fit dropped too much, or the wrong: %d checkpoints, %d attempts", len(next.Checkpoints), len(next.Attempts))
	}
	small := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{{Number: 2, Message: "a"}, {Number: 1, Message: "b"}}}
	before := *small.DeepCopy()
	Fit(&small)
	if diff := cmp.Diff(before, small); diff != "" {
		t.Errorf("a small status was shortened (-before +after):\n%s", diff)
	}
	wide := v1alpha1.TrainingRunStatus{WorkerSelector: strings.Repeat("x", MaxBytes-100),
		Capabilities: &v1alpha1.Capabilities{Supported: []string{strings.Repeat("s", 64)}, Ignored: []string{"seed"}}}
	Fit(&wide)
	if wide.Capabilities.Supported != nil || len(wide.Capabilities.Ignored) != 1 {
		t.Errorf("the capabilities are %+v", wide.Capabilities)
	}
	evaluated := v1alpha1.TrainingRunStatus{}
	for i := range 64 {
		evaluated.Environments = append(evaluated.Environments, v1alpha1.EnvironmentStatus{Name: fmt.Sprint(i)})
		for j := range 16 {
			evaluated.Environments[i].Evaluation = append(evaluated.Environments[i].Evaluation,
				v1alpha1.Estimate{Name: fmt.Sprintf("pass@%d", j)})
		}
	}
	Fit(&evaluated)
	if got := size(&evaluated); got > MaxBytes || len(evaluated.Environments[0].Evaluation) < 3 ||
		evaluated.Environments[0].Evaluation[0].Name != "pass@0" {
		t.Errorf("status has %d bytes, at most %d are meant; of an environment is left %+v", got, MaxBytes,
			evaluated.Environments[0])
	}
	faulty := v1alpha1.TrainingRunStatus{Checkpoints: []v1alpha1.Checkpoint{{Name: "2"}, {Name: "1"}}}
	for i := range 64 {
		faulty.Environments = append(faulty.Environments, v1alpha1.EnvironmentStatus{Name: fmt.Sprint(i),
			Fault: strings.Repeat("f", maxFault)})
	}
	Fit(&faulty)
	if got := size(&faulty); got > MaxBytes || faulty.Environments[0].Fault == "" || len(faulty.Checkpoints) != 2 {
		t.Errorf("status has %d bytes, at most %d are meant; left are %d checkpoints and of the first environment %+v", got,
			MaxBytes, len(faulty.Checkpoints), faulty.Environments[0])
	}
	huge := v1alpha1.TrainingRunStatus{WorkerSelector: strings.Repeat("x", 20000)}
	Fit(&huge) // Fit returns, although there is nothing to drop.
}

// TestUsageDoesNotFall reports less usage than a former learner did, as a learner without artifacts does.
func TestUsageDoesNotFall(t *testing.T) {
	next := v1alpha1.TrainingRunStatus{}
	report := func(usd float64, used contract.Usage) v1alpha1.Usage {
		p := contract.Progress{Usage: used}
		p.SetCost(&spending.Cost{Answered: usd, Unconfirmed: float64(used.UnconfirmedTokens) / 8})
		Report(&next, p, time.Unix(0, 0))
		return *next.Usage
	}
	// A hostile learner may report anything.
	report(0, contract.Usage{PromptTokens: -1})
	report(0.5, contract.Usage{PromptTokens: 100, SampledTokens: 50, TrainedTokens: 10, UnconfirmedTokens: 7})
	want := v1alpha1.Usage{PromptTokens: new(int64(100)), SampledTokens: new(int64(50)), TrainedTokens: new(int64(20)),
		BoughtTwiceTokens: new(int64(0)), EstimatedUSD: new(0.5)}
	if diff := cmp.Diff(want, report(0.1, contract.Usage{PromptTokens: 3, TrainedTokens: 20})); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	// The counters of the learner are as high as before, and its prices are lower.
	used := contract.Usage{PromptTokens: 100, SampledTokens: 50, TrainedTokens: 20}
	if got := report(0.2, used); *got.EstimatedUSD != 0.5 {
		t.Errorf("prices have fallen: the cost is %v, want 0.5", *got.EstimatedUSD)
	}
	used.UnconfirmedTokens = 2
	for _, usd := range []float64{0.2, 0.5, 0.25} {
		got := report(usd, used)
		if *got.EstimatedUSD != 0.75 || got.UnconfirmedUSD == nil || *got.UnconfirmedUSD != 0.25 {
			t.Errorf("some tokens are unconfirmed: the cost is %v, want 0.75 with 0.25 for these", *got.EstimatedUSD)
		}
	}
	used.SampledTokens, used.UnconfirmedTokens = 51, 0
	if got := report(0.625, used); *got.EstimatedUSD != 0.625 || got.UnconfirmedUSD != nil {
		t.Errorf("a part of them is confirmed: the cost is %v, want 0.625", *got.EstimatedUSD)
	}
	Report(&next, contract.Progress{Usage: used}, time.Unix(0, 0))
	if next.Usage.EstimatedUSD != nil || next.Usage.UnconfirmedUSD != nil {
		t.Errorf("no price is known: the cost is %v, want none", *next.Usage.EstimatedUSD)
	}
}

// TestCostOfEarlierVersions plays learners and managers of earlier versions, which count all tokens at the prices of
// the newest attempt, and do not report the cost of unconfirmed tokens.
func TestCostOfEarlierVersions(t *testing.T) {
	used := contract.Usage{SampledTokens: 50, UnconfirmedTokens: 7}
	next := v1alpha1.TrainingRunStatus{}
	for _, usd := range []float64{0.5, 0.25} {
		Report(&next, contract.Progress{Usage: used, EstimatedUSD: &usd}, time.Unix(0, 0))
		if got := *next.Usage.EstimatedUSD; got != usd {
			t.Errorf("an earlier learner confirms tokens: the cost is %v, want %v", got, usd)
		}
	}
	p := contract.Progress{Usage: used}
	p.SetCost(&spending.Cost{Answered: 0.125, Unconfirmed: 0.0625})
	Report(&next, p, time.Unix(0, 0))
	if got := *next.Usage.EstimatedUSD; got != 0.1875 {
		t.Errorf("the cost of answered tokens was not known before: it is %v, want 0.1875", got)
	}
	behind := contract.Progress{Usage: contract.Usage{SampledTokens: 3, UnconfirmedTokens: 1}, EstimatedUSD: new(0.01)}
	Report(&next, behind, time.Unix(0, 0))
	if got := *next.Usage.EstimatedUSD; got != 0.1875 {
		t.Errorf("an earlier learner knows a part of the tokens: the cost is %v, want 0.1875", got)
	}
}
