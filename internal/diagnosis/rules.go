// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

// Names of the metrics that rules read.
const (
	metricReward       = contract.MetricReward
	metricMixed        = "env/all/by_group/frac_mixed"
	metricAllGood      = "env/all/by_group/frac_all_good"
	metricAllBad       = "env/all/by_group/frac_all_bad"
	metricCut          = "env/all/stop/length"
	metricMalformed    = "env/all/stop/malformed"
	metricGradientNorm = "unclipped_grad_l2:mean"
	suffixFaultRatio   = "/fault_ratio"
	suffixLow          = "/ci95_low"
	suffixHigh         = "/ci95_high"
)

// episodesFault names the environment whose episodes end with faults most often.
func episodesFault(s series, _ Settings) string {
	rows := newest(s.steps, window)
	if len(rows) == 0 {
		return ""
	}
	worst, most := "", 0.0
	for _, name := range slices.Sorted(maps.Keys(rows[len(rows)-1].Metrics)) {
		environment, ok := strings.CutSuffix(strings.TrimPrefix(name, "env/"), suffixFaultRatio)
		if share := mean(rows, name); ok && (share > most || share == most && worst == "all") {
			worst, most = environment, share
		}
	}
	if most < faulty {
		return ""
	}
	of := "the environments"
	if worst != "all" {
		of = fmt.Sprintf("environment %q", worst)
	}
	return fmt.Sprintf("%s of the episodes of %s end with a fault (mean of %d steps), and are not trained on.",
		percent(most), of, len(rows))
}

func repliesCut(s series, _ Settings) string {
	rows := newest(s.steps, window)
	share := mean(rows, metricCut)
	if share < cut {
		return ""
	}
	return fmt.Sprintf("sampling.maxTokens cut %s of the last replies (mean of %d steps).", percent(share), len(rows))
}

func callsMalformed(s series, _ Settings) string {
	rows := newest(s.steps, window)
	share := mean(rows, metricMalformed)
	if share < malformed {
		return ""
	}
	return fmt.Sprintf("%s of the episodes end with a reply that the format cannot parse (mean of %d steps).",
		percent(share), len(rows))
}

// rewardFell compares the newest steps with the best sequence of as many earlier steps, and with the first step
// alone: if the learning rate is far too high, only the first step is good.
func rewardFell(s series, _ Settings) string {
	if len(s.steps) < 2*fewest {
		return ""
	}
	earlier := s.steps[:len(s.steps)-fewest]
	best, at, n := mean(earlier[:1], metricReward), earlier[0].Step, 1
	for i := range len(earlier) - fewest + 1 {
		rows := earlier[i : i+fewest]
		if m := mean(rows, metricReward); m > best {
			best, at, n = m, rows[fewest-1].Step, fewest
		}
	}
	now := mean(newest(s.steps, fewest), metricReward)
	// The best of many means is above the mean by chance. So a fall must exceed four standard errors of the difference,
	// and be at least one third of the reward.
	noise := 4 * spread(s.steps, metricReward) * math.Sqrt(1/float64(n)+1/float64(fewest))
	if best-now <= noise || best-now < math.Abs(best)/3 {
		return ""
	}
	return fmt.Sprintf("The mean reward fell from %.3g around step %d to %.3g.", best, at, now)
}

// noGradient reports steps without a group that has different rewards. It excepts a policy that has learnt its tasks,
// and a policy that a teacher teaches.
func noGradient(s series, _ Settings) string {
	rows := newest(s.steps, fewest)
	if has(rows, contract.MetricTeacherKL) {
		return ""
	}
	none := func(v float64) bool { return v == 0 }
	if len(rows) < fewest || !all(rows, metricMixed, none) {
		return ""
	}
	if mean(rows, metricAllGood) >= solved && !all(s.steps, metricMixed, none) {
		return ""
	}
	since := len(s.steps)
	for since > 0 && s.steps[since-1].Metrics[metricMixed] == 0 {
		since--
	}
	return fmt.Sprintf("No group of the last %d steps had different rewards, so that there was no gradient; the mean "+
		"reward is %.3g.", len(s.steps)-since, mean(rows, metricReward))
}

func entropyCollapsed(s series, _ Settings) string {
	rows := newest(s.steps, window)
	if len(rows) < fewest || !all(rows, contract.MetricEntropy, func(v float64) bool { return v < collapsed }) ||
		mean(rows, metricAllBad) < 0.5 || has(rows, contract.MetricTeacherKL) {
		return ""
	}
	return fmt.Sprintf("The entropy is %.2g nats, so that the samples of a group are alike, and %s of the groups earn "+
		"nothing.", mean(rows, contract.MetricEntropy), percent(mean(rows, metricAllBad)))
}

func samplerDiffers(s series, _ Settings) string {
	rows := newest(s.steps, window)
	if len(rows) < fewest || !has(rows, contract.MetricKLSampleTrain) {
		return ""
	}
	kl := mean(rows, contract.MetricKLSampleTrain)
	if math.Abs(kl) < differs {
		return ""
	}
	return fmt.Sprintf("The log-probabilities of sampler and trainer differ by %.2g nats a token (mean of %d steps).", kl,
		len(rows))
}

func gradientClipped(s series, settings Settings) string {
	rows := newest(s.steps, window)
	clip := settings.GradClipNorm
	if clip <= 0 || len(rows) < fewest ||
		!all(rows, metricGradientNorm, func(v float64) bool { return v > clipped*clip }) {
		return ""
	}
	return fmt.Sprintf("gradClipNorm is %.3g, and the norm of each of the last %d gradients is above %.3g: their mean is "+
		"%.3g.", clip, len(rows), clipped*clip, mean(rows, metricGradientNorm))
}

// rewardUnchanged looks for a trend over all steps. It excepts a policy that has learnt its tasks, and a policy that
// a teacher teaches.
func rewardUnchanged(s series, _ Settings) string {
	const sure = 1.645 // One-sided, at 5%.
	if len(s.steps) < trend || has(s.steps, contract.MetricTeacherKL) ||
		mean(newest(s.steps, window), metricAllGood) >= solved ||
		rises(s.steps, metricReward) > sure {
		return ""
	}
	return fmt.Sprintf("The mean reward is %.3g and has not risen in %d steps.",
		mean(newest(s.steps, window), metricReward), s.steps[len(s.steps)-1].Step-s.steps[0].Step+1)
}

// heldOutFalls compares the newest evaluation with the best one by their intervals of 95%.
func heldOutFalls(s series, _ Settings) string {
	if len(s.evaluations) < 2 || len(s.steps) < fewest {
		return ""
	}
	last := s.evaluations[len(s.evaluations)-1]
	for _, name := range slices.Sorted(maps.Keys(last.Metrics)) {
		high, ok := last.Metrics[name+suffixHigh]
		if !ok {
			continue
		}
		best := last
		for _, row := range s.evaluations {
			if row.Metrics[name] > best.Metrics[name] {
				best = row
			}
		}
		low, ok := best.Metrics[name+suffixLow]
		if !ok || low <= high || fell(s.steps, best.Step) {
			continue
		}
		return fmt.Sprintf("%s fell from %.3g at step %d to %.3g at step %d, beyond their intervals of 95%%, and the reward "+
			"of training did not fall.", name, best.Metrics[name], best.Step, last.Metrics[name], last.Step)
	}
	return ""
}

// optionsIgnored looks at all steps: an option that was ignored once stays a finding, so that the run has one event
// for it.
func optionsIgnored(s series, _ Settings) string {
	const most, longest = 5, 40
	found := map[string]bool{}
	for _, row := range s.steps {
		if row.Metrics[contract.MetricOptionsIgnored] == 0 {
			continue
		}
		for name := range row.Metrics {
			if option, ok := strings.CutPrefix(name, contract.PrefixIgnored); ok {
				found[option] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(found))
	for i, name := range names {
		names[i] = contract.Truncate(name, longest)
		if quoted := strconv.Quote(names[i]); len(quoted) > len(names[i])+2 {
			names[i] = quoted
		}
	}
	var list string
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		list = names[0]
	case n <= most:
		list = strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		list = fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return fmt.Sprintf("Agents ask for %s, which the gateway does not have, and are answered without.", list)
}

// fell reports whether the newest rewards are below the rewards around a step.
func fell(steps []history.Row, step int64) bool {
	around := slices.DeleteFunc(slices.Clone(steps), func(r history.Row) bool {
		return r.Step > step+fewest || r.Step < step-fewest
	})
	return len(around) > 0 && mean(newest(steps, fewest), metricReward) < mean(around, metricReward)
}
