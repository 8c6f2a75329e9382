// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const prefix = "tinker_operator_"

// Description describes a metric of the manager.
type Description struct {
	Name, Help string
	Labels     []string
}

// Descriptions describe all metrics of the manager. docs/metrics.md is made from them.
var Descriptions []Description

// describe returns the descriptor of a metric, and adds the metric to Descriptions.
func describe(name, help string, labels ...string) *prometheus.Desc {
	Descriptions = append(Descriptions, Description{Name: prefix + name, Help: help, Labels: labels})
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

// describeRun is describe for a metric of one run.
func describeRun(name, help string, labels ...string) *prometheus.Desc {
	return describe("run_"+name, help, append([]string{"namespace", "run"}, labels...)...)
}

// The metrics. A metric of a run is absent while the status lacks the figure.
var (
	runsByState          = describe("runs", "TrainingRuns by state.", "namespace", "state")
	queuedRuns           = describe("queued_runs", "TrainingRuns that wait in a queue of Kueue.", "namespace", "queue")
	environmentCondition = describe("environment_condition", "1 for each condition of a RewardEnvironment as it stands.",
		"namespace", "environment", "type", "status", "reason", "code")

	runCondition = describeRun("condition", "1 for each condition of a TrainingRun as it stands.", "type", "status",
		"reason", "code")
	runInfo    = describeRun("info", "1 for each TrainingRun, with its model and its TinkerEndpoint.", "model", "endpoint")
	runStep    = describeRun("step", "Committed steps.")
	runSteps   = describeRun("steps", "Steps that the run is to make.")
	runTokens  = describeRun("tokens_total", "Tokens over all attempts.", "kind")
	runPending = describeRun("unconfirmed_tokens", "Tokens at most that requests without a known outcome may have cost.")
	runUSD     = describeRun("estimated_usd",
		"Cost of the tokens over all attempts, each at the price when it was counted, in US dollars.")
	runBudget   = describeRun("budget_usd", "Limit of spec.budget, in US dollars.")
	runRestarts = describeRun("restarts_total", "Attempts that followed on one that ended by itself.")
	runAttempts = describeRun("ended_attempts", "Attempts in the status that have ended, by cause and code.", "cause",
		"code")
	runRatio     = describeRun("effective_training_ratio", "Time spent on steps that count by the time since the start.")
	runWorkers   = describeRun("workers", "Worker pods that exist.")
	runWanted    = describeRun("wanted_workers", "Worker pods that the run asks for.")
	runReady     = describeRun("ready_workers", "Worker pods that are ready.")
	runStarted   = describeRun("start_timestamp_seconds", "When the first attempt began, in seconds since 1970.")
	runCompleted = describeRun("completion_timestamp_seconds",
		"When the run became Complete or Failed, in seconds since 1970.")
	runSaved = describeRun("checkpoint_timestamp_seconds", "When the newest checkpoint was saved, in seconds since 1970.")
)

// runMetrics are the gauges of status.metrics, by the names of the metrics.
var runMetrics = func() map[string]*prometheus.Desc {
	gauges := map[string]*prometheus.Desc{}
	for _, m := range contract.Metrics {
		if m.Gauge != "" {
			gauges[m.Name] = describeRun(m.Gauge, m.Help)
		}
	}
	return gauges
}()

// sample is one figure of a run.
type sample struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	value  float64
	labels []string
}

func (s sample) metric(namespace, name string) prometheus.Metric {
	return prometheus.MustNewConstMetric(s.desc, s.kind, s.value, append([]string{namespace, name}, s.labels...)...)
}

// samples is a list of figures. A figure that a status lacks is not added.
type samples []sample

func add[T int32 | int64 | float64](list *samples, desc *prometheus.Desc, kind prometheus.ValueType, value *T,
	labels ...string) {
	if value != nil {
		*list = append(*list, sample{desc, kind, float64(*value), labels})
	}
}

func (list *samples) addTime(desc *prometheus.Desc, at *metav1.Time) {
	if at != nil {
		*list = append(*list, sample{desc, prometheus.GaugeValue, float64(at.Unix()), nil})
	}
}

// samplesOf returns the figures of a run's status.
func samplesOf(run *v1alpha1.TrainingRun) samples {
	var list samples
	s := &run.Status
	endpoint := ""
	if named := run.Spec.Tinker.EndpointRef; named != nil {
		endpoint = named.Name
	}
	list = append(list, sample{runInfo, prometheus.GaugeValue, 1, []string{run.Spec.Model.Name, endpoint}})
	if run.Spec.Budget != nil {
		add(&list, runBudget, prometheus.GaugeValue, run.Spec.Budget.USD)
	}
	add(&list, runStep, prometheus.GaugeValue, s.Step)
	add(&list, runSteps, prometheus.GaugeValue, s.Steps)
	add(&list, runRatio, prometheus.GaugeValue, s.EffectiveTrainingRatio)
	add(&list, runWorkers, prometheus.GaugeValue, s.Workers)
	if s.Workers != nil && desired.HasWorkers(run) {
		add(&list, runWanted, prometheus.GaugeValue, run.Spec.Rollouts.Workers)
	}
	add(&list, runReady, prometheus.GaugeValue, s.ReadyWorkers)
	add(&list, runRestarts, prometheus.CounterValue, s.Restarts)
	list.addTime(runStarted, s.StartTime)
	list.addTime(runCompleted, s.CompletionTime)
	if latest := status.Latest(s); latest != nil {
		list.addTime(runSaved, latest.SaveTime)
	}
	for _, m := range s.Metrics {
		if gauge := runMetrics[m.Name]; gauge != nil {
			add(&list, gauge, prometheus.GaugeValue, &m.Value)
		}
	}
	list.addUsage(s.Usage)
	list.addAttempts(s.Attempts)
	for _, condition := range s.Conditions {
		list = append(list, sample{runCondition, prometheus.GaugeValue, 1, []string{condition.Type, string(condition.Status),
			condition.Reason, codeLabel(string(status.CodeOf(s.Codes, condition.Type)))}})
	}
	return list
}

func (list *samples) addUsage(u *v1alpha1.Usage) {
	if u == nil {
		return
	}
	add(list, runTokens, prometheus.CounterValue, u.PromptTokens, "prompt")
	add(list, runTokens, prometheus.CounterValue, u.CachedPromptTokens, "prompt_cached")
	add(list, runTokens, prometheus.CounterValue, u.SampledTokens, "sampled")
	add(list, runTokens, prometheus.CounterValue, u.TrainedTokens, "trained")
	add(list, runTokens, prometheus.CounterValue, u.BoughtTwiceTokens, "bought_twice")
	add(list, runTokens, prometheus.CounterValue, u.JudgePromptTokens, "judge_prompt")
	add(list, runTokens, prometheus.CounterValue, u.JudgeSampledTokens, "judge_sampled")
	add(list, runTokens, prometheus.CounterValue, u.ReferenceTokens, "reference")
	add(list, runTokens, prometheus.CounterValue, u.TeacherTokens, "teacher")
	add(list, runPending, prometheus.GaugeValue, u.UnconfirmedTokens)
	add(list, runUSD, prometheus.GaugeValue, u.EstimatedUSD)
}

// addAttempts counts attempts by cause and code; one entry of the status may stand for several.
func (list *samples) addAttempts(attempts []v1alpha1.Attempt) {
	counts := map[[2]string]int64{}
	for _, a := range attempts {
		if a.Cause != "" {
			counts[[2]string{a.Cause, codeLabel(a.Reason)}] += int64(max(a.Count, 1))
		}
	}
	for key, count := range counts {
		add(list, runAttempts, prometheus.GaugeValue, &count, key[0], key[1])
	}
}

// codeLabel returns the label of a code. The codes of other builds share one label, so that they do not make series of
// their own.
func codeLabel(reason string) string {
	if code := problem.Code(reason); reason != "" && !problem.IsKnown(code) {
		return problem.Lookup(code).Reason
	}
	return reason
}
