// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
)

// The endpoint pauses its queue for an hour between two turns of an episode that may take 15 minutes.
func TestReviewPauseBecomesAReward(t *testing.T) {
	t.Skip("finding not repaired yet: learner A3")
	tokens := qwen3(t)
	rows, _ := dataset.NewArithmetic(99)
	env, err := tooluse.New(tooluse.NewLocal(rows, verify.ExactMatch{}, tooluse.Calculator{}), tooluse.Options{MaxParseErrors: 1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := families.New("qwen3", tokens, families.Options{End: "<|im_end|>"})
	if err != nil {
		t.Fatal(err)
	}
	const call = "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [99, 99]}}\n</tool_call>"
	for _, pausedMember := range []int{-1, 0} {
		synctest.Test(t, func(t *testing.T) {
			inner := &script{tokens: tokens, replies: []string{call, "It is 198."}}
			policy := policyFunc(func(ctx context.Context, q Request) (Sample, error) {
				if q.Request == 1 && q.Member == pausedMember {
					select {
					case <-time.After(time.Hour): // queue_state paused_capacity: the client waits it out
					case <-ctx.Done():
						return Sample{}, ctx.Err()
					}
				}
				return inner.Sample(ctx, q)
			})
			g := alone(func(e *contract.Environment) {
				e.Limits = contract.Limits{Turns: 50, EpisodeSeconds: 900, OnLimit: "Grade"}
			})
			g.Split, g.Task = "train", 7993
			p := &Player{Environment: env, Renderer: r, Policy: policy, Gate: open{}, Progress: &Progress{}}
			group, err := p.Play(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			m := group.Members[0]
			t.Logf("paused member %d: group %s, member %s, reward %v, stop %s, segments to train on: %d", pausedMember, group.Outcome, m.Outcome, m.Reward, m.StopReason, len(m.Segments))
		})
	}
}

// An environment's example says what the policy says, too.
func TestReviewFewShot(t *testing.T) {
	t.Skip("finding not repaired yet: learner B11")
	var prompts []string
	policy := policyFunc(func(_ context.Context, q Request) (Sample, error) {
		var b strings.Builder
		for _, id := range q.Prompt {
			if id < 256 {
				b.WriteByte(byte(id))
			} else {
				b.WriteString("<end>")
			}
		}
		prompts = append(prompts, b.String())
		return sampled("   yes  "), nil
	})
	first := ask("example", "yes", "q")
	env := &scripted{first: first, step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
		if turn == 1 {
			return done(1), nil
		}
		m := append(append([]chat.Message{}, first[0].Messages...), replies[0].Message, chat.Message{Role: "user", Content: "on"})
		return environment.Turn{Prompts: []environment.Prompt{{Messages: m}}}, nil
	}}
	group := play(t, env, policy, alone(nil))
	for i, p := range prompts {
		t.Logf("prompt %d: %q", i, p)
	}
	t.Logf("segments: %d (1 if history stayed as it was)", len(group.Members[0].Segments))
}

// A hung environment: Start never answers, and the episode may take 10 s.
func TestReviewHungStart(t *testing.T) {
	t.Skip("finding not repaired yet: learner B7")
	for _, where := range []string{"start", "finish"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			env := &hung{where: where}
			p := &Player{Environment: env, Renderer: newPlayer(t, arithmetic(t), says("x")).Renderer, Policy: says("x"), Gate: open{}, Progress: &Progress{}}
			g := alone(func(e *contract.Environment) { e.Limits = contract.Limits{EpisodeSeconds: 10, Turns: 1} })
			began := time.Now()
			_, err := p.Play(ctx, g)
			t.Logf("hung in %s: after %v: %v", where, time.Since(began), err)
		})
	}
}

type hung struct{ where string }

func (h *hung) Splits(context.Context) ([]environment.Split, error) { return nil, nil }
func (h *hung) Start(ctx context.Context, _ environment.Task) (environment.Episode, error) {
	if h.where == "start" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &hungEpisode{h}, nil
}

type hungEpisode struct{ h *hung }

func (e *hungEpisode) Prompts(context.Context) ([]environment.Prompt, error) { return ask("q"), nil }
func (e *hungEpisode) Step(context.Context, []environment.Reply) (environment.Turn, error) {
	return environment.Turn{Prompts: ask("q")}, nil
}
func (e *hungEpisode) Finish(ctx context.Context) (environment.Turn, error) {
	<-ctx.Done()
	return environment.Turn{}, ctx.Err()
}
func (e *hungEpisode) Close() {}
