// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// MaxVerdictBytes is the size at which the kubelet cuts termination messages.
const MaxVerdictBytes = 4096

// EncodeVerdict returns at most MaxVerdictBytes of JSON. If not everything fits, it first drops the metrics that the
// status does not show, then older checkpoints, environments and other fields. The newest checkpoint always stays.
func EncodeVerdict(v Verdict) ([]byte, error) {
	v.Reason, v.Message = v.Reason.Bounded(), Truncate(v.Message, 1024)
	v.Progress = v.Progress.Finite()
	for {
		data, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encoding verdict: %w", err)
		}
		if len(data) <= MaxVerdictBytes {
			return data, nil
		}
		if !v.shrink() {
			return nil, fmt.Errorf("encoding verdict: %d bytes, %d fit", len(data), MaxVerdictBytes)
		}
	}
}

// shrink drops the least important field and reports whether there was any to drop.
func (v *Verdict) shrink() bool {
	p := &v.Progress
	kept := StatusMetrics(p.Metrics)
	switch {
	case len(kept) < len(p.Metrics):
		p.Metrics = kept
	case len(p.Checkpoints) > 1:
		p.Checkpoints = p.Checkpoints[:len(p.Checkpoints)-1]
	case p.Contents != nil && len(p.Contents.Sources) > 1: // heartbeats have reported them
		p.Contents = nil
	case p.dropEstimate():
	case len(p.Environments) > 0:
		p.Environments = nil
	case p.Capabilities != nil:
		p.Capabilities = nil
	case len(p.Metrics) > 0:
		p.Metrics = nil
	case len(v.Message) > 256:
		v.Message = Truncate(v.Message, 256)
	default:
		return false
	}
	return true
}

// dropEstimate drops the last estimate of the environment that has most of them, and reports whether there was one.
func (p *Progress) dropEstimate() bool {
	most := -1
	for i, e := range p.Environments {
		if len(e.Evaluation) > 0 && (most < 0 || len(e.Evaluation) >= len(p.Environments[most].Evaluation)) {
			most = i
		}
	}
	if most < 0 {
		return false
	}
	list := &p.Environments[most].Evaluation
	*list = (*list)[:len(*list)-1]
	return true
}

// DecodeVerdict reads a termination message; anything else is an error.
func DecodeVerdict(message string) (Verdict, error) {
	var v Verdict
	if err := json.Unmarshal([]byte(message), &v); err != nil {
		return Verdict{}, fmt.Errorf("decoding verdict: %w", err)
	}
	if v.Cause == "" || v.Attempt < 1 {
		return Verdict{}, fmt.Errorf("decoding verdict: cause %q of attempt %d is invalid", v.Cause, v.Attempt)
	}
	return v, nil
}

// Finite returns the progress without the numbers that JSON cannot carry; leaving one out sets Diverged.
func (p Progress) Finite() Progress {
	metrics := maps.Clone(p.Metrics)
	maps.DeleteFunc(metrics, func(_ string, v float64) bool { return !finite.Is(v) })
	p.Diverged = p.Diverged || len(metrics) != len(p.Metrics)
	p.Metrics = metrics
	p.Environments = slices.Clone(p.Environments)
	for i := range p.Environments {
		e := &p.Environments[i]
		e.Reward, e.PassAt1, e.FaultRatio = finiteOrNil(e.Reward), finiteOrNil(e.PassAt1), finiteOrNil(e.FaultRatio)
		e.Evaluation = slices.DeleteFunc(slices.Clone(e.Evaluation),
			func(estimate Estimate) bool { return !estimate.isFinite() })
	}
	p.Checkpoints = slices.Clone(p.Checkpoints)
	for i := range p.Checkpoints {
		p.Checkpoints[i].Value = finiteOrNil(p.Checkpoints[i].Value)
	}
	if p.Best != nil {
		best := *p.Best
		best.Value = finiteOrNil(best.Value)
		p.Best = &best
	}
	if !finite.Is(p.TrainingSeconds) {
		p.TrainingSeconds = 0
	}
	return p
}

func (e Estimate) isFinite() bool {
	return finite.Is(e.Value) && (e.Low == nil || finite.Is(*e.Low)) && (e.High == nil || finite.Is(*e.High))
}

func finiteOrNil(v *float64) *float64 {
	if v == nil || !finite.Is(*v) {
		return nil
	}
	return v
}
