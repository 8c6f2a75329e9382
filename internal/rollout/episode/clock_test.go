// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// TestPausesDoNotCountAsEpisodeSeconds checks that a pause of the endpoint's queue, here of an hour, does not count as
// the policy's time: an episode that may take 15 minutes earns the same as without the pause.
func TestPausesDoNotCountAsEpisodeSeconds(t *testing.T) {
	tokens := qwen3(t)
	env, r := calculatorEnvironment(t), rendererOf(t, "qwen3", tokens)
	const call = "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [99, " +
		"99]}}\n</tool_call>"
	play := func(t *testing.T, pause time.Duration) rl.Group {
		inner := &script{tokens: tokens, replies: []string{call, "It is 198."}}
		policy := policyFunc(func(ctx context.Context, q Request) (Sample, error) {
			if err := wait.Sleep(ctx, pause); err != nil {
				return Sample{}, err
			}
			sample, err := inner.Sample(ctx, q)
			sample.Took = time.Second
			return sample, err
		})
		g := singleMember(func(e *contract.Environment) {
			e.Limits = playing.Limits{Turns: 50, EpisodeSeconds: 900, OnLimit: "Grade"}
		})
		g.Split, g.Task = "train", 7993
		p := &Player{Environment: env, Renderer: r, Policy: policy, Gate: open{}, Progress: &Progress{}}
		group, err := p.Play(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		return group
	}
	synctest.Test(t, func(t *testing.T) {
		paused, undisturbed := play(t, time.Hour), play(t, 0)
		if diff := cmp.Diff(undisturbed, paused); diff != "" || undisturbed.Members[0].Reward != 1 {
			t.Errorf("reward %v; a pause changes the group (-undisturbed +paused):\n%s", undisturbed.Members[0].Reward, diff)
		}
	})
}

// TestCallsOfEnvironmentsHaveDeadlines checks that a call of an environment that never returns becomes a fault within
// the episode's time limit, or within a default if there is no limit.
func TestCallsOfEnvironmentsHaveDeadlines(t *testing.T) {
	cases := map[string]struct {
		seconds int
		within  time.Duration
	}{
		"a time limit":  {seconds: 10, within: 10 * time.Second},
		"no time limit": {within: callTimeout},
	}
	for name, tc := range cases {
		for _, where := range []string{"Start", "Prompts", "Step", "Finish"} {
			t.Run(where+" with "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					env := &blockingEnvironment{where: where}
					p := newPlayer(t, env, says("x"))
					g := singleMember(func(e *contract.Environment) {
						e.Limits = playing.Limits{EpisodeSeconds: int32(tc.seconds), Turns: 2}
					})
					began := time.Now()
					group, err := p.Play(t.Context(), g)
					if err != nil {
						t.Fatal(err)
					}
					want, within := rl.EnvironmentFault, tc.within
					if where == "Step" && tc.seconds > 0 {
						// The time limit of the episode ends a step: the episode is graded as it stands.
						want = rl.Deadline
					}
					if group.Outcome != want || time.Since(began) > within+closeTimeout {
						t.Errorf("the group is %v after %v: %s", group.Outcome, time.Since(began), group.Reason)
					}
				})
			})
		}
	}
}

// blockingEnvironment is an environment that never returns from one call.
type blockingEnvironment struct{ where string }

func (h *blockingEnvironment) hang(ctx context.Context, where string) error {
	if h.where != where {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *blockingEnvironment) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (h *blockingEnvironment) Start(ctx context.Context, _ environment.Task) (environment.Episode, error) {
	return &hangingEpisode{h}, h.hang(ctx, "Start")
}

type hangingEpisode struct{ *blockingEnvironment }

func (e *hangingEpisode) Prompts(ctx context.Context) ([]environment.Prompt, error) {
	return ask("q"), e.hang(ctx, "Prompts")
}

func (e *hangingEpisode) Step(ctx context.Context, _ []environment.Reply) (environment.Turn, error) {
	return environment.Turn{Prompts: ask("q")}, e.hang(ctx, "Step")
}

func (e *hangingEpisode) Finish(ctx context.Context) (environment.Turn, error) {
	return environment.Turn{Done: true}, e.hang(ctx, "Finish")
}

// Close always hangs.
func (e *hangingEpisode) Close(ctx context.Context) { <-ctx.Done() }
