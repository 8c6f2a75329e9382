// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "maps"

// These metrics of metrics.jsonl are shown in the status. A Progress may carry others; these come first where
// there is no room for all.
const (
	MetricReward                 = "env/all/reward/total"
	MetricPassAt1                = "test/pass@1"
	MetricLoss                   = "loss:sum"
	MetricKLSampleTrain          = "optim/kl_sample_train_v1"
	MetricEntropy                = "optim/entropy"
	MetricStepSeconds            = "time/total"
	MetricSampledTokensPerSecond = "sampled_tokens_per_second"
)

var shown = map[string]bool{
	MetricReward: true, MetricPassAt1: true, MetricLoss: true, MetricKLSampleTrain: true,
	MetricEntropy: true, MetricStepSeconds: true, MetricSampledTokensPerSecond: true,
}

// shownOnly gives the metrics that the status shows, and whether there were others.
func shownOnly(metrics map[string]float64) (map[string]float64, bool) {
	kept := maps.Clone(metrics)
	maps.DeleteFunc(kept, func(name string, _ float64) bool { return !shown[name] })
	return kept, len(kept) < len(metrics)
}
