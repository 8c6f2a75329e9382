// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// This file says where each metric goes. All metrics of a step's row and of an evaluation's result are in the files
// of the run and in the learner's log, and are sent to trackers. Metrics lists the metrics that are also shown
// elsewhere.

// Names of metrics that code refers to.
const (
	MetricReward                 = "env/all/reward/total"
	MetricPassAt1                = "test/pass@1"
	MetricLoss                   = "loss:sum"
	MetricNLL                    = "train_mean_nll"
	MetricHeldOutNLL             = "test/nll"
	MetricKLSampleTrain          = "optim/kl_sample_train_v1"
	MetricEntropy                = "optim/entropy"
	MetricTeacherKL              = "teacher_kl"
	MetricStepSeconds            = "time/total"
	MetricSamplingSeconds        = "time/sampling"
	MetricTrainingSeconds        = "time/train_step"
	MetricSavingSeconds          = "time/save_checkpoint"
	MetricSampledTokensPerSecond = "sampled_tokens_per_second"
	// MetricOptionsIgnored is the mean number of an episode's requests that were answered without an option for which
	// the agent asked, over the episodes that have such requests.
	MetricOptionsIgnored = "env/all/options_ignored"
	// PrefixIgnored precedes the name of such an option.
	PrefixIgnored = "env/all/ignored_"
)

// Metric describes where a metric is shown besides files and trackers. All metrics in Metrics are in the history.
type Metric struct {
	// Name is the name of the metric in metrics.jsonl or evaluations.jsonl.
	Name string
	// Status says that the metric is in status.metrics, and in each verdict.
	Status bool
	// Gauge is the name of the Prometheus metric after tinker_operator_run_, and Help describes it. It requires Status.
	Gauge, Help string
	// Short is the name for kubectl tinker, besides Name.
	Short string
}

// Metrics are the metrics that people see outside of files and trackers, beginning with the metrics of evaluations.
var Metrics = []Metric{
	{MetricPassAt1, true, "pass_at_1", "pass@1 of the newest evaluation.", "pass@1"},
	{MetricReward, true, "reward", "Mean reward of the newest step's episodes.", "reward"},
	{MetricLoss, true, "loss", "Loss of the newest step, as the endpoint reports it.", "loss"},
	{MetricNLL, true, "nll", "Mean negative log-likelihood of the newest supervised step's tokens, in nats.", "nll"},
	{MetricHeldOutNLL, true, "held_out_nll", "Negative log-likelihood per token of the held-out rows, in nats.",
		"test-nll"},
	{MetricKLSampleTrain, true, "kl_sample_train", "optim/kl_sample_train_v1 of the newest step, in nats.", "kl"},
	{MetricEntropy, true, "entropy", "Entropy of the newest step's sampled tokens, in nats.", "entropy"},
	{MetricTeacherKL, true, "teacher_kl",
		"Mean of log p_policy - log p_teacher over the newest step's sampled tokens, in nats.", "teacher-kl"},
	{MetricStepSeconds, true, "step_seconds", "Seconds that the newest step took.", "seconds"},
	{MetricSamplingSeconds, true, "step_sampling_seconds", "Seconds that the newest step waited for its groups.", ""},
	{MetricTrainingSeconds, true, "step_training_seconds",
		"Seconds of forward_backward and optim_step of the newest step.", ""},
	{MetricSavingSeconds, true, "step_saving_seconds", "Seconds until the newest step was saved and committed.", ""},
	{MetricSampledTokensPerSecond, true, "sampled_tokens_per_second",
		"Tokens sampled for the newest step by its seconds.", "tok/s"},
	{Name: "optim/lr", Short: "lr"},
	{Name: "batch/rows"},
	{Name: "batch/rows_left_out"},
	{Name: "batch/tokens"},
	{Name: "batch/groups"},
	{Name: "batch/groups_usable"},
	{Name: "batch/prompt_tokens"},
	{Name: "batch/sampled_tokens"},
	{Name: "batch/lag"},
	{Name: "env/all/correct", Short: "correct"},
	{Name: "env/all/truncated"},
	{Name: "env/all/stop/length"},
	{Name: "env/all/stop/malformed"},
	{Name: "env/all/fault_ratio"},
	{Name: "env/all/turns_per_episode"},
	{Name: "env/all/by_group/frac_mixed"},
	{Name: "env/all/by_group/frac_all_good"},
	{Name: "env/all/by_group/frac_all_bad"},
	{Name: "unclipped_grad_l2:mean", Short: "grad"},
}

// places are the indexes of Metrics by name.
var places = func() map[string]int {
	places := map[string]int{}
	for i, m := range Metrics {
		places[m.Name] = i
	}
	return places
}()

// IsEvaluation reports whether a metric is one of evaluations.
func IsEvaluation(name string) bool { return strings.HasPrefix(name, "test/") }

// rank returns the importance of a metric to people, 0 for the most important metrics, for places without room for
// all of them. The history has the metrics whose rank is below unranked.
func rank(name string) int {
	place, listed := places[name]
	switch {
	case listed && Metrics[place].Status:
		return 0
	case IsEvaluation(name) && (strings.Contains(name, "pass@") || strings.HasSuffix(name, "reward/total")):
		return 1
	case listed:
		return 2
	case strings.HasPrefix(name, "loss:"), strings.HasPrefix(name, "env/") &&
		(strings.HasSuffix(name, "/reward/total") || strings.HasSuffix(name, "/fault_ratio")):
		return 3
	case name == MetricOptionsIgnored, strings.HasPrefix(name, PrefixIgnored):
		return 4
	default:
		return unranked
	}
}

const unranked = 5

// StatusMetrics returns the metrics that the status has.
func StatusMetrics(metrics map[string]float64) map[string]float64 {
	return only(metrics, func(name string) bool { return rank(name) == 0 })
}

// RecordMetrics returns the finite metrics that a history has, at most MaxRecordMetrics.
func RecordMetrics(metrics map[string]float64) map[string]float64 {
	return MainMetrics(only(metrics, func(name string) bool { return rank(name) < unranked }), MaxRecordMetrics)
}

func only(metrics map[string]float64, keep func(name string) bool) map[string]float64 {
	kept := maps.Clone(metrics)
	maps.DeleteFunc(kept, func(name string, _ float64) bool { return !keep(name) })
	return kept
}

// MainMetrics returns at most limit metrics, beginning with the ones that people most want to see. It leaves out
// metrics that are not finite or whose name has more than MaxMetricName bytes. Metrics that this version of the program
// does not know come last.
func MainMetrics(metrics map[string]float64, limit int) map[string]float64 {
	if metrics == nil {
		return nil
	}
	kept := only(metrics, func(name string) bool { return finite.Is(metrics[name]) && len(name) <= MaxMetricName })
	names := slices.SortedFunc(maps.Keys(kept), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	for _, name := range names[min(len(names), limit):] {
		delete(kept, name)
	}
	return kept
}

// LowerIsBetter reports whether the lowest value of a metric is the best, as for negative log-likelihoods.
func LowerIsBetter(name string) bool { return name == MetricNLL || path.Base(name) == "nll" }
