// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// record adds the results of a turn. A number that is not finite is the environment's fault.
func (e *episode) record(turn environment.Turn) error {
	for _, r := range turn.Rewards {
		if r.Conversation != "" && e.conversations[r.Conversation] == nil {
			return environment.UnaskedRewardError(r.Conversation, slices.Sorted(maps.Keys(e.conversations)))
		}
		e.rewards = append(e.rewards, reward{value: r.Value, conversation: r.Conversation, round: e.turns})
		for name, value := range r.Parts {
			e.parts = put(e.parts, name, e.parts[name]+value)
		}
	}
	for name, value := range turn.Metrics {
		e.metrics = put(e.metrics, name, value)
	}
	e.toolCalls += turn.ToolCalls
	e.ungraded = turn.Ungraded
	for _, key := range turn.Masked {
		if c := e.conversations[key]; c == nil || len(c.replies) == 0 {
			return &environment.Fault{Permanent: true,
				Err: fmt.Errorf("the environment masks conversation %q, which has no reply", key)}
		}
		e.conversations[key].maskLast()
	}
	rewards := values(e.rewards)
	if bad := slices.ContainsFunc(rewards, isNotFinite); bad || anyNotFinite(e.parts) || anyNotFinite(e.metrics) {
		return &environment.Fault{Err: fmt.Errorf("the environment gave a reward or metric that is not finite: %v, %v, %v",
			rewards, e.parts, e.metrics)}
	}
	return nil
}

func isNotFinite(v float64) bool { return !finite.Is(v) }

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

// result returns the member of the episode, and the reason if the member is not usable. limit is the limit that ended
// the episode; it is empty if the episode ended by itself.
func (e *episode) result(ctx context.Context, limit string) (rl.Member, string, error) {
	limited := limit != ""
	if limited {
		e.setStop(limit)
	}
	if limited && e.spec.Settings.Limits.OnLimit != playing.LimitExclude {
		turn, err := callEnvironment(ctx, e, "Finish", e.running.Finish)
		if err != nil {
			return rl.Member{}, "", err
		}
		if err := e.record(turn); err != nil {
			return rl.Member{}, "", err
		}
		if turn.Ungraded == nil {
			e.recordResults(turn, false)
		}
	}
	if e.ungraded != nil {
		e.limit = limit
		return rl.Member{Trajectories: e.trajectories()}, "", nil
	}
	return e.graded(limit)
}

// graded returns the member of an episode that has been graded.
func (e *episode) graded(limit string) (rl.Member, string, error) {
	limited := limit != ""
	m := rl.Member{StopReason: e.stopReason(), Turns: e.requests, PromptTokens: e.promptTokens,
		SampledTokens: e.sampledTokens, Parts: e.parts, Metrics: e.metrics}
	var unrewarded error
	m.Reward, m.Trajectories, unrewarded = e.reward(limited)
	if limit == stopPromptTokens && e.requests == 0 && len(e.rewards) == 0 && e.spec.Settings.Reward.Nonterminal == nil {
		unrewarded = errors.New("the policy was never asked")
	}
	switch {
	case unrewarded == nil:
		return m, "", nil
	case limited:
		// The run leaves out episodes that a limit ended, or there was nothing to grade.
		m.Outcome, m.Reward, m.Trajectories = rl.Deadline, 0, nil
		return m, "ended by the limit " + limit, nil
	case e.abandoned:
		m.Outcome, m.Reward, m.Trajectories = rl.Deadline, 0, nil
		return m, "the policy ended the episode by replies that break the format, and it has no reward", nil
	default:
		return rl.Member{}, "", &environment.Fault{Permanent: true, Err: unrewarded}
	}
}

// reward returns the reward of the episode, and the trajectories of its conversations. An error names the episode or
// conversation without a reward.
func (e *episode) reward(limited bool) (whole float64, list []rl.Trajectory, err error) {
	whole, ok := rewardOf(values(e.rewards), e.spec.Settings, limited)
	if !ok {
		return 0, nil, errors.New("the episode ended without a reward")
	}
	list = e.trajectories()
	for i, c := range e.played() {
		rewards := rewardsOf(c, e.rewards)
		total, ok := rewardOf(values(rewards), e.spec.Settings, limited)
		if !ok {
			return 0, nil, fmt.Errorf("the episode ended, and its conversation %q has no reward", c.key)
		}
		list[i].Reward, list[i].Judgements = total, e.recorder.of(c.key)
		if e.spec.StepRewards {
			list[i].StepRewards = stepRewards(c, rewards, e.spec.Settings, limited)
		}
		for j := range list[i].Segments {
			if list[i].StepRewards == nil {
				list[i].Segments[j].Steps = nil
			}
		}
	}
	return whole, list, nil
}

// trajectories returns the conversations of the episode as they are trained on, without their rewards.
func (e *episode) trajectories() []rl.Trajectory {
	var list []rl.Trajectory
	for _, c := range e.played() {
		list = append(list, rl.Trajectory{Role: c.role, Key: c.key, StopReason: c.stop, Segments: c.segments.Segments()})
	}
	return list
}

// played lists the conversations that have a reply, or all conversations if none has a reply, in the order of their
// keys: the order in which they began may depend on the order of replies.
func (e *episode) played() []*conversation {
	var played []*conversation
	all := slices.SortedFunc(slices.Values(e.order), func(a, b *conversation) int { return cmp.Compare(a.key, b.key) })
	for _, c := range all {
		if len(c.replies) > 0 {
			played = append(played, c)
		}
	}
	if len(played) == 0 {
		return all
	}
	return played
}

// stopReason returns the reason why the episode ended, or else why the last of its conversations ended.
func (e *episode) stopReason() string {
	played := e.played()
	if e.stop != "" || len(played) == 0 {
		return e.stop
	}
	return played[len(played)-1].stop
}
