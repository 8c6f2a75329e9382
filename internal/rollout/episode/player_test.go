// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestPlayArithmetic(t *testing.T) {
	policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
		if request.Member == 0 {
			return sampled(" 0"), nil
		}
		return sampled(" 1"), nil
	})
	got := play(t, arithmetic(t), policy, game(nil))
	prompt := "User: What is 0 + 0?\n\nAssistant:"
	member := func(index int, reward float64, reply, metric string) rl.Member {
		m := rl.Member{Index: index, Reward: reward, StopReason: "stop", Turns: 1, PromptTokens: 32, SampledTokens: 3,
			Metrics: map[string]float64{"correct": 0, "wrong": 0, "no_answer": 0, "truncated": 0, "answered": 1}}
		m.Metrics[metric] = 1
		m.Trajectories = []rl.Trajectory{{Reward: reward, StopReason: "stop", Segments: []rl.Segment{{
			Tokens:   slices.Concat(bytesOf(prompt+reply), []int32{end}),
			Actions:  slices.Concat(make([]bool, 32), []bool{true, true, true}),
			Logprobs: slices.Concat(make([]float32, 32), []float32{-1. / 8, -2. / 8, -3. / 8}),
		}}}}
		return m
	}
	want := rl.Group{
		Key: rl.Key{Slot: 7, Lineage: rl.Genesis("spec")}, Environment: "env",
		Members:      []rl.Member{member(0, 1, " 0", "correct"), member(1, 0, " 1", "wrong")},
		PromptTokens: 64, SampledTokens: 6,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Play (-want +got):\n%s", diff)
	}
}

// TestPlayDoesNotDependOnOrder checks that the same game gives the same group in whatever order its members end.
func TestPlayDoesNotDependOnOrder(t *testing.T) {
	digest := func(last int) rl.Digest {
		var digest rl.Digest
		synctest.Test(t, func(t *testing.T) {
			policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
				time.Sleep(time.Duration((request.Member+last)%4) * time.Second)
				return sampled(fmt.Sprint(request.Seed(rl.UsePolicy, 42) % 100)), nil
			})
			group := play(t, arithmetic(t), policy, game(func(g *Spec) { g.GroupSize = 4 }))
			digest = group.Digest()
		})
		return digest
	}
	for last := 1; last < 4; last++ {
		if digest(last) != digest(0) {
			t.Errorf("the group differs when member %d ends last", 3-last)
		}
	}
}

func TestFaults(t *testing.T) {
	flaw := errors.New("it broke")
	judge := &environment.Fault{Kind: environment.JudgeFault, Err: flaw}
	broken := &environment.Fault{Kind: environment.EnvironmentFault, Permanent: true, Err: flaw}
	// faults are the errors of steps, by member and try. A step without an error gives the member's index as reward.
	cases := map[string]struct {
		faults  map[string]error
		retries int
		floor   int
		outcome rl.Outcome
		members []rl.Outcome
		tries   []int
		reason  string
	}{
		"nothing is tried again without a fault": {retries: 3, floor: 2, members: []rl.Outcome{rl.Usable, rl.Usable},
			tries: []int{0, 0}},
		"a fault is tried again": {faults: map[string]error{"1/0": flaw, "1/1": judge}, retries: 2, floor: 2,
			members: []rl.Outcome{rl.Usable, rl.Usable}, tries: []int{0, 2}},
		"but not more often than it may": {faults: map[string]error{"1/0": flaw, "1/1": flaw}, retries: 1, floor: 1,
			members: []rl.Outcome{rl.Usable, rl.EnvironmentFault}, tries: []int{0, 1},
			reason: "task 7 of split train, member 1: it broke"},
		"a permanent fault is not tried again": {faults: map[string]error{"0/0": broken}, retries: 3, floor: 1,
			members: []rl.Outcome{rl.EnvironmentFault, rl.Usable}, tries: []int{0, 0},
			reason: "task 7 of split train, member 0: it broke"},
		"one cause names the group's": {faults: map[string]error{"0/0": judge}, floor: 2, outcome: rl.JudgeFault,
			members: []rl.Outcome{rl.JudgeFault, rl.Usable}, tries: []int{0, 0},
			reason: "1 of 2 members are usable, 2 are needed; task 7 of split train, member 0: it broke"},
		"two causes are below the floor": {faults: map[string]error{"0/0": judge, "1/0": flaw}, floor: 1,
			outcome: rl.BelowFloor, members: []rl.Outcome{rl.JudgeFault, rl.EnvironmentFault}, tries: []int{0, 0},
			reason: "0 of 2 members are usable, 1 are needed; task 7 of split train, member 0: it broke"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var replies sync.Map
				policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
					text := fmt.Sprintf("%d/%d", request.Member, request.Try)
					replies.Store(text, true)
					return sampled(text), nil
				})
				env := &scripted{step: func(_ int, replies []environment.Reply) (environment.Turn, error) {
					text := replies[0].Message.Content
					if err := tc.faults[text]; err != nil {
						return environment.Turn{}, err
					}
					return done(float64(text[0] - '0')), nil
				}}
				group := play(t, env, policy, game(func(g *Spec) {
					g.Settings.Retries, g.MinMembers, g.Task = tc.retries, tc.floor, 7
				}))
				if group.Outcome != tc.outcome || group.Reason != tc.reason {
					t.Errorf("outcome %v, reason %q, want %v, %q", group.Outcome, group.Reason, tc.outcome, tc.reason)
				}
				var tried int64
				for i, m := range group.Members {
					if m.Outcome != tc.members[i] || m.Retries != tc.tries[i] || m.Index != i {
						t.Errorf("member %d: outcome %v after %d retries, want %v after %d", i, m.Outcome, m.Retries, tc.members[i],
							tc.tries[i])
					}
					if kept := len(segmentsOf(m)) > 0; kept != (m.Outcome == rl.Usable && tc.outcome == rl.Usable) {
						t.Errorf("member %d has %d segments", i, len(segmentsOf(m)))
					}
					tried += int64(m.Retries) + 1
				}
				// "User: q\n\nAssistant:" and "0/0<|end|>".
				if group.PromptTokens != 19*tried || group.SampledTokens != 4*tried {
					t.Errorf("%d + %d tokens were counted for %d tries", group.PromptTokens, group.SampledTokens, tried)
				}
			})
		})
	}
}

func TestFaultBeforeTheFirstPrompt(t *testing.T) {
	env := &scripted{
		start: func(environment.Task) error {
			return &environment.Fault{Permanent: true, Err: errors.New("no such task")}
		},
	}
	group := play(t, env, says("1"), game(nil))
	if group.Outcome != rl.EnvironmentFault || !strings.Contains(group.Reason, "no such task") {
		t.Errorf("outcome %v, reason %q", group.Outcome, group.Reason)
	}
}

// TestUnavailableEnvironmentsCostNoTry refuses the first sessions. The group equals the group of an environment that
// was available.
func TestUnavailableEnvironmentsCostNoTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := multiTurn(2, keep)
		want := play(t, env, says("yes"), game(nil))
		var mu sync.Mutex
		refusals := 12
		env.start = func(environment.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if refusals--; refusals < 0 {
				return nil
			}
			return &environment.Fault{Unavailable: true, Err: errors.New("connection refused")}
		}
		if diff := cmp.Diff(want, play(t, env, says("yes"), game(nil))); diff != "" {
			t.Errorf("group (-available +unavailable at first):\n%s", diff)
		}
	})
}

func TestEnvironmentSeedsDiffer(t *testing.T) {
	var mu sync.Mutex
	seeds := map[uint64]bool{}
	env := &scripted{
		start: func(task environment.Task) error {
			mu.Lock()
			defer mu.Unlock()
			seeds[task.Seed] = true
			return nil
		},
		step: func(int, []environment.Reply) (environment.Turn, error) { return done(1), nil },
	}
	play(t, env, says("1"), game(func(g *Spec) { g.GroupSize = 8 }))
	if len(seeds) != 8 {
		t.Errorf("8 members had %d seeds", len(seeds))
	}
}

func TestRefusedSamples(t *testing.T) {
	answers := func(s Sample, err error) policyFunc {
		return func(context.Context, Request) (Sample, error) { return s, err }
	}
	nan := sampled("1")
	nan.Logprobs[0] /= 0
	cases := map[string]policyFunc{
		"refused by the endpoint":   answers(Sample{}, &RefusedError{Err: errors.New("too long")}),
		"without log-probabilities": answers(Sample{Tokens: []int32{1, end}, Stopped: true}, nil),
		"with infinite ones":        answers(nan, nil),
		"with tokens of nobody":     answers(Sample{Tokens: []int32{300}, Logprobs: []float32{-1}}, nil),
	}
	for name, policy := range cases {
		t.Run(name, func(t *testing.T) {
			group := play(t, &scripted{}, policy, game(func(g *Spec) { g.Settings.Retries = 3 }))
			if group.Outcome != rl.InvalidTokens || group.Members[0].Retries != 0 {
				t.Errorf("outcome %v after %d retries, want invalid tokens at once", group.Outcome, group.Members[0].Retries)
			}
		})
	}
}

func TestPlayEndsWithTheErrorOfThePolicy(t *testing.T) {
	missing := errors.New("the policy is missing")
	policy := policyFunc(func(ctx context.Context, request Request) (Sample, error) {
		if request.Member == 1 {
			return Sample{}, missing
		}
		<-ctx.Done()
		return Sample{}, ctx.Err()
	})
	env := &scripted{}
	if _, err := newPlayer(t, env, policy).Play(t.Context(), game(nil)); !errors.Is(err, missing) {
		t.Errorf("Play: err = %v, want the policy's", err)
	}
	if env.opened != env.closed {
		t.Errorf("%d episodes were begun, %d closed", env.opened, env.closed)
	}
}

func TestPlayEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		env := &scripted{step: func(int, []environment.Reply) (environment.Turn, error) {
			cancel()
			return environment.Turn{}, errors.New("cut off")
		}}
		_, err := newPlayer(t, env, says("1")).Play(ctx, game(func(g *Spec) { g.Settings.Retries = 3 }))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Play: err = %v, want the context's", err)
		}
	})
}
