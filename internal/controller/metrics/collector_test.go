// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// objects are a run that trains, one that has no status yet, one that waits in a queue, and an environment.
func objects(t *testing.T, more ...client.Object) client.Reader {
	t.Helper()
	at := metav1.NewTime(time.Unix(1700000000, 0))
	training := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sums"}}
	training.Spec.Rollouts.Workers = new(int32(6)) // a quota admits two
	training.Spec.Model.Name, training.Spec.Tinker.EndpointRef = "Qwen/Qwen3-8B", &ref.Endpoint{Name: "prod"}
	training.Spec.Budget = &v1alpha1.Budget{USD: new(20.0)}
	training.Status = v1alpha1.TrainingRunStatus{
		State: v1alpha1.StateTraining, Step: new(int64(7)), Steps: new(int64(60)), Restarts: new(int32(2)), StartTime: &at,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonAsExpected},
			{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInputBlocked}},
		Codes: []v1alpha1.ConditionCode{{Condition: v1alpha1.ConditionProgressing, Code: "DataBlocked"}},
		Metrics: []v1alpha1.MetricValue{{Name: contract.MetricReward, Value: 0.5},
			{Name: contract.MetricStepSeconds, Value: 1.25}, {Name: "time/sampling", Value: 1},
			{Name: "time/train_step", Value: 0.125}, {Name: "time/save_checkpoint", Value: 0.0625},
			{Name: "of a later version", Value: 1}},
		LatestCheckpoint: "s", Checkpoints: []v1alpha1.Checkpoint{{Name: "s", SaveTime: &at}},
		Usage: &v1alpha1.Usage{SampledTokens: new(int64(9000)), ReferenceTokens: new(int64(70)),
			EstimatedUSD: new(1.5)},
		Attempts: []v1alpha1.Attempt{{Number: 4}, {Number: 3, Cause: "Crashed", Count: 2},
			{Number: 1, Cause: "Crashed"}, {Number: 8, Cause: "Upstream", Reason: "KeyRefused", Count: 4},
			{Number: 9, Cause: "Upstream", Reason: "OfAnotherBuild"}, {Number: 10, Cause: "Upstream", Reason: "OfAThird"}},
		Workers: new(int32(2)), ReadyWorkers: new(int32(1)), EffectiveTrainingRatio: new(0.75),
	}
	pending := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "new"}}
	queued := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "queued"}}
	queued.Status.State, queued.Status.Queue = v1alpha1.StateQueued, &v1alpha1.QueueStatus{Name: "blue"}
	env := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sums"}}
	env.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Probed"}}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(training, pending, queued, env).
		WithObjects(more...).Build()
}

// endpoint is a TinkerEndpoint that the manager of a namespace serves, with budgets. One of them began in another
// month.
func endpoint(name, namespace string) *v1alpha1.TinkerEndpoint {
	of := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: name}}
	of.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "all", Tokens: new(int64(1000)), Period: "Forever"},
		{Name: "team", USD: new(10.0), Period: "Month"}}
	past := metav1.NewTime(time.Unix(1700000000, 0))
	of.Status = v1alpha1.TinkerEndpointStatus{Namespace: namespace, Runs: new(int32(3)),
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "KeyRefused"}},
		Codes:      []v1alpha1.ConditionCode{{Condition: "Ready", Code: "ServerKeyRefused"}},
		Usage: []v1alpha1.EndpointBudgetUsage{{Name: "all", Tokens: new(int64(850)), USD: new(2.5)},
			{Name: "team", Since: &past, Tokens: new(int64(700)), USD: new(9.5)}}}
	return of
}

func TestCollect(t *testing.T) {
	elected := make(chan struct{})
	reads := objects(t, endpoint("prod", "operator"), endpoint("elsewhere", "another"))
	collector := NewCollector(reads, Endpoints{Reader: reads, Namespace: "operator", Now: time.Now}, elected)
	if n := testutil.CollectAndCount(collector); n != 0 {
		t.Errorf("a manager that does not act serves %d metrics of runs", n)
	}
	close(elected)
	want, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := testutil.CollectAndCompare(collector, strings.NewReader(string(want))); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(collector)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// TestCollectNamedEndpoints collects for a manager that may only get endpoints by name. One of them does not exist.
func TestCollectNamedEndpoints(t *testing.T) {
	elected := make(chan struct{})
	close(elected)
	reads := objects(t, endpoint("prod", "operator"), endpoint("other", "operator"))
	collector := NewCollector(reads, Endpoints{Reader: reads, Names: []string{"gone", "prod"}, Namespace: "operator",
		Now: time.Now},
		elected)
	want := "# HELP tinker_operator_endpoint_runs Runs in progress that use the TinkerEndpoint.\n" +
		"# TYPE tinker_operator_endpoint_runs gauge\ntinker_operator_endpoint_runs{endpoint=\"prod\"} 3\n"
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want), "tinker_operator_endpoint_runs"); err != nil {
		t.Error(err)
	}
}

// TestDashboardNamesMetrics makes sure that the dashboard names no metric that the manager does not have. A test of
// cmd/broker does so for the metrics of brokers.
func TestDashboardNamesMetrics(t *testing.T) {
	text, err := os.ReadFile("../../../charts/tinker-operator/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	described, named := map[string]bool{}, map[string]bool{}
	for _, d := range Descriptions {
		described[d.Name] = true
	}
	for _, name := range regexp.MustCompile(prefix+`\w+`).FindAllString(string(text), -1) {
		if strings.HasPrefix(name, prefix+"broker_") {
			continue
		}
		if named[name] = true; !described[name] {
			t.Errorf("the dashboard names %s, which the manager does not have", name)
		}
	}
	if !named[prefix+"endpoint_budget_used_usd"] || !named[prefix+"endpoint_budget_usd"] {
		t.Error("the dashboard does not show budgets beside their usage")
	}
}
