// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// record adds the results of a turn. A number that is not finite is the environment's fault.
func (e *episode) record(turn environment.Turn) error {
	for _, r := range turn.Rewards {
		e.rewards = append(e.rewards, r.Value)
		for name, value := range r.Parts {
			e.parts = put(e.parts, name, e.parts[name]+value)
		}
	}
	for name, value := range turn.Metrics {
		e.metrics = put(e.metrics, name, value)
	}
	e.toolCalls += turn.ToolCalls
	for _, key := range turn.Masked {
		if c := e.conversations[key]; c == nil || len(c.replies) == 0 {
			return &environment.Fault{Permanent: true, Err: fmt.Errorf("the environment masks conversation %q, which has no reply", key)}
		}
		e.conversations[key].mask()
	}
	if bad := slices.ContainsFunc(e.rewards, isNotFinite); bad || anyNotFinite(e.parts) || anyNotFinite(e.metrics) {
		return &environment.Fault{Err: fmt.Errorf("the environment gave a reward or metric that is not finite: %v, %v, %v", e.rewards, e.parts, e.metrics)}
	}
	return nil
}

// isNotFinite reports whether a number is NaN or infinite.
func isNotFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

func anyNotFinite(numbers map[string]float64) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(numbers)), isNotFinite)
}

func put(m map[string]float64, name string, value float64) map[string]float64 {
	if m == nil {
		m = map[string]float64{}
	}
	m[name] = value
	return m
}

// result is the member that the episode gives, and why that is not usable if it is not. The limit names the one
// that ended the episode; it is empty when the episode ended by itself.
func (e *episode) result(ctx context.Context, limit string) (rl.Member, string, error) {
	limited := limit != ""
	if limited {
		e.stop = limit
	}
	if limited && e.spec.Settings.Limits.OnLimit != contract.OnLimitExclude {
		turn, err := callEnvironment(ctx, e, "Finish", e.running.Finish)
		if err != nil {
			return rl.Member{}, "", err
		}
		if err := e.record(turn); err != nil {
			return rl.Member{}, "", err
		}
	}
	m := rl.Member{StopReason: e.stop, Turns: e.requests, PromptTokens: e.promptTokens, SampledTokens: e.sampledTokens,
		Parts: e.parts, Metrics: e.metrics}
	reward, ok := rewardOf(e.rewards, e.spec.Settings, limited)
	switch {
	case ok:
		m.Reward = reward
	case limited:
		// Left out by a limit: because the run wants it so, or because nothing was there to be graded.
		m.Outcome = rl.Deadline
		return m, "ended by the limit " + limit, nil
	default:
		err := errors.New("the episode ended without a reward")
		return rl.Member{}, "", &environment.Fault{Permanent: true, Err: err}
	}
	for _, c := range e.order {
		m.Segments = append(m.Segments, rl.Trainable(c.segments)...)
	}
	return m, "", nil
}
