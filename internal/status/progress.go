// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// Bounds of the lists, as the CRD has them.
const (
	maxCheckpoints = 16
	maxPath        = 1024
	lineageDigits  = 10

	maxEstimateName = 128
)

// Report writes a learner's progress into the status of its run. It leaves out values that the CRD would refuse: one
// odd string of a learner must not keep the status from being written.
func Report(next *v1alpha1.TrainingRunStatus, p contract.Progress, now time.Time) {
	p = p.Finite()
	if p.Phase != "" && (p.Phase != contract.PhaseOpening || p.Lineage != "") {
		next.Step = ptr.To(p.Step)
	}
	if p.Steps > 0 {
		next.Steps = ptr.To(p.Steps)
	}
	reportMetrics(next, p.Metrics)
	if p.EvaluatedStep != nil {
		next.Evaluation = &v1alpha1.EvaluationStatus{Step: *p.EvaluatedStep}
	}
	reportCheckpoints(next, p)
	reportEnvironments(next, p.Environments)
	reportCapabilities(next, p.Capabilities)
	next.TokenizerSHA256 = cmp.Or(next.TokenizerSHA256, Trim(p.TokenizerSHA256, 64))
	next.TemplateSHA256 = cmp.Or(next.TemplateSHA256, Trim(p.TemplateSHA256, 64))
	reportDataset(next, p.Contents)
	next.Console = cmp.Or(Trim(p.Console, 512), next.Console)
	reportUsage(next, p)
	reportOrigin(next, p)
	if next.StartTime != nil && p.TrainingSeconds > 0 {
		elapsed := now.Sub(next.StartTime.Time).Seconds()
		next.EffectiveTrainingRatio = ptr.To(Round(min(1, p.TrainingSeconds/max(elapsed, 1))))
	}
}

// reportMetrics keeps metrics that a report does not mention: evaluations are rarer than steps.
func reportMetrics(next *v1alpha1.TrainingRunStatus, metrics map[string]float64) {
	var list []v1alpha1.MetricValue
	for _, m := range contract.Metrics {
		if !m.Status {
			continue
		}
		if value, ok := metrics[m.Name]; ok {
			list = append(list, v1alpha1.MetricValue{Name: m.Name, Value: Round(value)})
		} else if former := next.Metric(m.Name); former != nil {
			list = append(list, v1alpha1.MetricValue{Name: m.Name, Value: *former})
		}
	}
	next.Metrics = list
}

// reportCheckpoints lists the checkpoints that a learner reports. The best checkpoint stays in the list regardless of
// its age.
func reportCheckpoints(next *v1alpha1.TrainingRunStatus, p contract.Progress) {
	best := Best(next).DeepCopy()
	if p.Best != nil && representable(*p.Best) {
		best = ptr.To(checkpointOf(*p.Best))
	}
	var listed []v1alpha1.Checkpoint
	for _, c := range p.Checkpoints {
		full := checkpointOf(c)
		switch {
		case len(listed) == maxCheckpoints || !representable(c) || slices.ContainsFunc(listed, named(full.Name)):
		case len(listed) == 0:
			listed = append(listed, full)
		default:
			listed = append(listed, v1alpha1.Checkpoint{Name: full.Name, Step: full.Step, State: full.State,
				Lineage: full.Lineage, SaveTime: full.SaveTime, ExpirationTime: full.ExpirationTime})
		}
	}
	if len(listed) > 0 {
		next.Checkpoints, next.LatestCheckpoint = listed, listed[0].Name
	}
	if best == nil {
		return
	}
	next.BestCheckpoint = best.Name
	switch i := slices.IndexFunc(next.Checkpoints, named(best.Name)); {
	case i < 0:
		next.Checkpoints = withCheckpoint(next.Checkpoints, *best)
	case best.Name == next.LatestCheckpoint:
		next.Checkpoints[i].Metric, next.Checkpoints[i].Value = best.Metric, best.Value
	default:
		next.Checkpoints[i] = *best
	}
	limitCheckpoints(next)
}

// KeepOlder adds the former checkpoints that are older than all checkpoints that a learner has reported last: a
// termination message has room only for the newest.
func KeepOlder(next *v1alpha1.TrainingRunStatus, former []v1alpha1.Checkpoint, reported []contract.Checkpoint) {
	if len(reported) == 0 {
		return
	}
	oldest := reported[len(reported)-1].Step
	for _, c := range former {
		if c.Step < oldest && next.Checkpoint(c.Name) == nil {
			next.Checkpoints = withCheckpoint(next.Checkpoints, c)
		}
	}
	limitCheckpoints(next)
}

// limitCheckpoints drops the oldest checkpoints that a status has no room for.
func limitCheckpoints(next *v1alpha1.TrainingRunStatus) {
	for len(next.Checkpoints) > maxCheckpoints && dropCheckpoint(next) {
	}
}

func named(name string) func(v1alpha1.Checkpoint) bool {
	return func(c v1alpha1.Checkpoint) bool { return c.Name == name }
}

func representable(c contract.Checkpoint) bool {
	return c.State != "" && len(c.State) <= maxPath && len(c.Sampler) <= maxPath
}

func checkpointOf(c contract.Checkpoint) v1alpha1.Checkpoint {
	checkpoint := v1alpha1.Checkpoint{
		Name:           cmp.Or(c.State[strings.LastIndexByte(c.State, '/')+1:], c.State),
		Step:           c.Step,
		State:          c.State,
		Sampler:        c.Sampler,
		Lineage:        Trim(c.Lineage, lineageDigits),
		SaveTime:       timeOf(c.SaveTime),
		ExpirationTime: timeOf(c.ExpirationTime),
		Metric:         Trim(c.Metric, 128),
	}
	if c.Attempt > 0 {
		checkpoint.Attempt = ptr.To(c.Attempt)
	}
	if c.Value != nil {
		checkpoint.Value = ptr.To(Round(*c.Value))
	}
	return checkpoint
}

func timeOf(text string) *metav1.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return ptr.To(metav1.NewTime(at.UTC().Truncate(time.Second)))
}

// maxFault limits the newest fault of an environment, in bytes.
const maxFault = 512

// reportEnvironments fills in the metrics of the environments that the run has pinned.
func reportEnvironments(next *v1alpha1.TrainingRunStatus, environments []contract.EnvironmentMetrics) {
	for _, e := range environments {
		for i := range next.Environments {
			if next.Environments[i].Name != e.Name {
				continue
			}
			setRounded(&next.Environments[i].Reward, e.Reward)
			setRounded(&next.Environments[i].PassAt1, e.PassAt1)
			setRounded(&next.Environments[i].FaultRatio, e.FaultRatio)
			if e.Fault != "" {
				next.Environments[i].Fault = contract.Truncate(e.Fault, maxFault)
			}
			if len(e.Evaluation) > 0 {
				next.Environments[i].Evaluation = estimatesOf(e.Evaluation)
			}
		}
	}
}

// estimatesOf leaves out estimates that the CRD would refuse.
func estimatesOf(found []contract.Estimate) []v1alpha1.Estimate {
	var list []v1alpha1.Estimate
	named := map[string]bool{}
	for _, e := range found {
		if len(list) == contract.MaxEstimates || len(e.Name) > maxEstimateName || named[e.Name] {
			continue
		}
		named[e.Name] = true
		estimate := v1alpha1.Estimate{Name: e.Name, Value: Round(e.Value)}
		setRounded(&estimate.Low, e.Low)
		setRounded(&estimate.High, e.High)
		list = append(list, estimate)
	}
	return list
}

func setRounded(field **float64, value *float64) {
	if value != nil {
		*field = ptr.To(Round(*value))
	}
}

// Bounds of the capabilities, as the CRD has them.
const (
	maxCapabilities = 64
	maxCapability   = 64
)

func reportCapabilities(next *v1alpha1.TrainingRunStatus, found *contract.Capabilities) {
	if found == nil {
		return
	}
	next.Capabilities = &v1alpha1.Capabilities{
		BaseURL: Trim(found.BaseURL, 2048), Model: Trim(found.Model, 256),
		Supported: capabilities(found.Supported), Ignored: capabilities(found.Ignored),
		Unsupported: capabilities(found.Unsupported),
		CheckedAt:   timeOf(found.CheckedAt), ClientVersion: Trim(found.ClientVersion, maxCapability),
		Connection: Trim(found.Connection, maxCapability),
	}
	if shared := found.SharedFrom; shared != nil {
		if at := timeOf(shared.CheckedAt); at != nil {
			next.Capabilities.SharedFrom = &v1alpha1.SharedCheck{Name: Trim(shared.Name, 253), CheckedAt: *at}
		}
	}
}

// Capabilities returns the capabilities in a status in the form of run files.
func Capabilities(found *v1alpha1.Capabilities) *contract.Capabilities {
	known := &contract.Capabilities{
		BaseURL: found.BaseURL, Model: found.Model,
		Supported: found.Supported, Ignored: found.Ignored, Unsupported: found.Unsupported,
		CheckedAt: rfc3339(found.CheckedAt), ClientVersion: found.ClientVersion, Connection: found.Connection,
	}
	if shared := found.SharedFrom; shared != nil {
		known.SharedFrom = &contract.SharedCheck{Name: shared.Name, CheckedAt: rfc3339(&shared.CheckedAt)}
	}
	return known
}

func rfc3339(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// capabilities returns the names, sorted and without duplicates. It leaves out names that are too long, and names
// beyond the maximum number.
func capabilities(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(name) > maxCapability })
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxCapabilities)]
}

// Lacks reports whether a check found that the endpoint lacks the named feature.
func Lacks(found *v1alpha1.Capabilities, name string) bool {
	return found != nil && (slices.Contains(found.Ignored, name) || slices.Contains(found.Unsupported, name))
}

// IsUndecided reports whether a check could not decide whether the endpoint has the named feature.
func IsUndecided(found *v1alpha1.Capabilities, name string) bool {
	return found != nil && len(found.Supported) > 0 && !slices.Contains(found.Supported, name) && !Lacks(found, name)
}

// reportUsage reports the usage of a run. No counter falls: a learner without artifacts knows only its own requests and
// the requests of the workers that it has met, so that the former status knows more.
func reportUsage(next *v1alpha1.TrainingRunStatus, p contract.Progress) {
	if p.Usage == (contract.Usage{}) {
		return
	}
	used := p.Usage.Max(UsageOf(next.Usage))
	used.UnconfirmedTokens = p.Usage.UnconfirmedTokens
	usd := costOf(next.Usage, p, used)
	next.Usage = &v1alpha1.Usage{
		PromptTokens:      ptr.To(used.PromptTokens),
		SampledTokens:     ptr.To(used.SampledTokens),
		TrainedTokens:     ptr.To(used.TrainedTokens),
		BoughtTwiceTokens: ptr.To(used.BoughtTwiceTokens),
		EstimatedUSD:      usd,
	}
	if used.CachedPromptTokens > 0 {
		next.Usage.CachedPromptTokens = ptr.To(used.CachedPromptTokens)
	}
	if used.JudgePromptTokens > 0 {
		next.Usage.JudgePromptTokens = ptr.To(used.JudgePromptTokens)
		next.Usage.JudgeSampledTokens = ptr.To(used.JudgeSampledTokens)
	}
	if used.ReferenceTokens > 0 {
		next.Usage.ReferenceTokens = ptr.To(used.ReferenceTokens)
	}
	if used.TeacherTokens > 0 {
		next.Usage.TeacherTokens = ptr.To(used.TeacherTokens)
	}
	if used.UnconfirmedTokens > 0 {
		next.Usage.UnconfirmedTokens = ptr.To(used.UnconfirmedTokens)
		next.Usage.UnconfirmedUSD = p.UnconfirmedUSD
	}
}

// costOf returns the cost of the used tokens in dollars; nil if a price is not known. The cost of answered tokens never
// falls, whatever prices the learner of a later attempt has: a learner without artifacts does not know the earlier
// cost.
func costOf(former *v1alpha1.Usage, p contract.Progress, used contract.Usage) *float64 {
	if p.EstimatedUSD == nil || former == nil || former.EstimatedUSD == nil {
		return p.EstimatedUSD
	}
	before, known := answeredUSD(former.EstimatedUSD, former.UnconfirmedUSD, ptr.Deref(former.UnconfirmedTokens, 0))
	now, whole := answeredUSD(p.EstimatedUSD, p.UnconfirmedUSD, p.Usage.UnconfirmedTokens)
	switch {
	case known && whole:
		return ptr.To(max(now, before) + ptr.Deref(p.UnconfirmedUSD, 0))
	case used != p.Usage:
		return ptr.To(max(*p.EstimatedUSD, *former.EstimatedUSD))
	default:
		return p.EstimatedUSD
	}
}

// answeredUSD returns the cost of the answered tokens. Earlier versions of the program do not report the cost of
// unconfirmed tokens, so that the result is then known only if there are no such tokens.
func answeredUSD(all, unconfirmed *float64, unconfirmedTokens int64) (usd float64, known bool) {
	return *all - ptr.Deref(unconfirmed, 0), unconfirmed != nil || unconfirmedTokens == 0
}

// UsageOf returns the counters of a usage in a status; zero for nil.
func UsageOf(u *v1alpha1.Usage) contract.Usage {
	if u == nil {
		return contract.Usage{}
	}
	value := func(n *int64) int64 { return ptr.Deref(n, 0) }
	return contract.Usage{
		PromptTokens: value(u.PromptTokens), SampledTokens: value(u.SampledTokens), TrainedTokens: value(u.TrainedTokens),
		BoughtTwiceTokens: value(u.BoughtTwiceTokens), JudgePromptTokens: value(u.JudgePromptTokens),
		JudgeSampledTokens: value(u.JudgeSampledTokens), ReferenceTokens: value(u.ReferenceTokens),
		UnconfirmedTokens: value(u.UnconfirmedTokens), CachedPromptTokens: value(u.CachedPromptTokens),
		TeacherTokens: value(u.TeacherTokens),
	}
}

// Round rounds a number to four significant digits, because columns print all digits of a number. It returns 0 for a
// number that is not finite.
func Round(v float64) float64 {
	if v == 0 || !finite.Is(v) {
		return 0
	}
	// Formatting rounds correctly, and its result prints as short as it reads.
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	if err != nil {
		return 0
	}
	return rounded
}

// reportOrigin records which run this run continues, or which earlier run of its name it does not continue.
func reportOrigin(next *v1alpha1.TrainingRunStatus, p contract.Progress) {
	if from := p.ResumedFrom; from != nil {
		next.ResumedFrom, next.EarlierRun = &v1alpha1.ResumedFrom{UID: Trim(from.UID, maxUID), Step: from.Step}, nil
		if from.UncountedSteps > 0 {
			next.ResumedFrom.UncountedSteps = ptr.To(from.UncountedSteps)
		}
	}
	if found := p.EarlierRun; found != nil && next.ResumedFrom == nil {
		next.EarlierRun = &v1alpha1.EarlierRun{UID: Trim(found.UID, maxUID), Step: found.Step,
			SameSettings: ptr.To(found.SameSettings)}
	}
}

// maxUID limits the characters of a uid in a status.
const maxUID = 64

// reportDataset keeps the data that a learner has read. Once a step is committed, the learner refuses other data.
func reportDataset(next *v1alpha1.TrainingRunStatus, read *contract.DataContents) {
	const most = 32
	if read == nil || len(read.Sources) > most {
		return
	}
	dataset := &v1alpha1.DatasetStatus{Revision: Trim(read.Revision, 64)}
	for _, s := range read.Sources {
		dataset.Sources = append(dataset.Sources, v1alpha1.DataSourceStatus{Name: Trim(s.Name, 253),
			SHA256: Trim(s.SHA256, 64),
			Rows:   ptr.To(s.Rows)})
	}
	next.Dataset = dataset
}
