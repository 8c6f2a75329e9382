// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// program is an environment whose episodes are a function.
type program func(ctx context.Context, policy environment.Policy) (environment.Turn, error)

func (p program) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (p program) Start(context.Context, environment.Task) (environment.Episode, error) {
	return programEpisode{run: p}, nil
}

type programEpisode struct {
	environment.Unasked
	run program
}

func (e programEpisode) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	return e.run(ctx, policy)
}

func (programEpisode) Close(context.Context) {}

// talk makes so many requests in a conversation, each with everything that was said before.
func talk(ctx context.Context, policy environment.Policy, role, key string, turns int) error {
	prompt := promptOf(role, key)
	for range turns {
		reply, err := policy.Chat(ctx, prompt)
		if err != nil {
			return err
		}
		prompt.Messages = append(prompt.Messages, reply.Message, ask("and?")[0].Messages[0])
	}
	return nil
}

// debate is a program with three conversations at once, which begin with the same prompt, and with a judge that asks
// the same question twice.
func debate(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	together, solving := errgroup.WithContext(ctx)
	for _, key := range []string{"b", "a", "c"} {
		together.Go(func() error { return talk(solving, policy, "solver", key, 2) })
	}
	if err := together.Wait(); err != nil {
		return environment.Turn{}, err
	}
	for range 2 {
		if _, err := policy.Chat(ctx, promptOf("judge", "judge")); err != nil {
			return environment.Turn{}, err
		}
	}
	rewards := []environment.Reward{reward1("judge", 1), reward1("b", 2), reward1("a", 3), reward1("c", 4)}
	return environment.Turn{Done: true, Rewards: rewards, Metrics: map[string]float64{"rounds": 2}}, nil
}

// slowly returns a policy that delays replies so that they arrive in a different order for each value of order.
func slowly(policy Policy, order int) policyFunc {
	return func(ctx context.Context, request Request) (Sample, error) {
		took := time.Duration((int(request.Conversation[0])*7+request.Turn*3)*order%11) * time.Second
		if err := wait.Sleep(ctx, took); err != nil {
			return Sample{}, err
		}
		return policy.Sample(ctx, request)
	}
}

// TestProgramDoesNotDependOnTheOrderOfReplies plays a program with replies that come in other orders.
func TestProgramDoesNotDependOnTheOrderOfReplies(t *testing.T) {
	played := func(order int) (group rl.Group, numbers []int64) {
		synctest.Test(t, func(t *testing.T) {
			policy := &seeded{}
			group = play(t, program(debate), slowly(policy, order), game(nil))
			numbers = policy.numbers()
		})
		return group, numbers
	}
	want, numbers := played(0)
	if got := summary(want.Members[0]); len(numbers) != 16 || want.Outcome != rl.Usable || !cmp.Equal(got, []string{
		"a (solver) 3 [] stop, 1 segments", "b (solver) 2 [] stop, 1 segments", "c (solver) 4 [] stop, 1 segments",
		"judge (judge) 1 [] stop, 2 segments"}) {
		t.Fatalf("%d requests, outcome %v (%s), trajectories %q", len(numbers), want.Outcome, want.Reason, got)
	}
	for order := 1; order < 11; order++ {
		got, others := played(order)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order %d: the group (-one order +the other):\n%s", order, diff)
		}
		if diff := cmp.Diff(numbers, others); diff != "" {
			t.Errorf("order %d: the numbers of requests (-one order +the other):\n%s", order, diff)
		}
	}
}

// TestProgramThatAsksAgain gives up a request and makes it again, as a program does after its process has ended: its
// samples equal the samples of an undisturbed episode.
func TestProgramThatAsksAgain(t *testing.T) {
	undisturbed := &seeded{}
	want := play(t, program(debate), undisturbed, singleMember(nil))
	policy := &seeded{}
	again := program(func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
		lost, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := p.Chat(lost, promptOf("solver", "a")); err == nil {
			return environment.Turn{}, errors.New("a request that was given up has a reply")
		}
		return debate(ctx, p)
	})
	got := play(t, again, policyFunc(func(ctx context.Context, request Request) (Sample, error) {
		if ctx.Err() != nil {
			return Sample{}, ctx.Err()
		}
		return policy.Sample(ctx, request)
	}), singleMember(nil))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the group (-undisturbed +got):\n%s", diff)
	}
	if diff := cmp.Diff(undisturbed.numbers(), policy.numbers()); diff != "" {
		t.Errorf("the numbers of requests (-undisturbed +got):\n%s", diff)
	}
}

// TestProgramsAtFault plays programs that break a rule, and checks that each of them is a fault whose reason names the
// rule.
func TestProgramsAtFault(t *testing.T) {
	twice := func(first, second string) program {
		return func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
			together, ctx := errgroup.WithContext(ctx)
			for _, key := range []string{first, second} {
				together.Go(func() error { return talk(ctx, p, "", key, 1) })
			}
			return done(1), together.Wait()
		}
	}
	one := func(rewards ...environment.Reward) program {
		return func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
			err := errors.Join(talk(ctx, p, "", "a", 1), talk(ctx, p, "", "b", 1))
			return environment.Turn{Done: true, Rewards: rewards}, err
		}
	}
	after := func(first, second string) program {
		return func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
			return done(1), errors.Join(talk(ctx, p, "", first, 1), talk(ctx, p, "", second, 1))
		}
	}
	cases := map[string]struct {
		run  program
		want string
	}{
		"a first conversation without":      {after("", "a"), "one of them has no key"},
		"a second conversation without":     {after("a", ""), "one of them has no key"},
		"two requests of a conversation":    {twice("a", "a"), `two requests at once in the conversation "a"`},
		"parallel requests without keys":    {twice("", ""), "they have no key"},
		"a conversation of several without": {twice("", "a"), "one of them has no key"},
		"an end with an open request":       {abandon, "ended while the conversation without a key had an open request"},
		"no request":                        {returns(done(1), nil), "never asked"},
		"a long key":                        {twice(strings.Repeat("k", 64), "a"), "more than 63 bytes"},
		"a reward of an unknown one":        {one(reward1("c", 1)), `"c", which it never asked for: its conversations are "a", "b"`},
		"a conversation that has no reward": {one(reward1("a", 1)), `"b" has no reward`},
		"no reward":                         {one(), "without a reward"},
		"an error":                          {returns(environment.Turn{}, permanent("it raised")), "it raised"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := policyFunc(func(ctx context.Context, _ Request) (Sample, error) {
					return sampled("yes"), wait.Sleep(ctx, time.Second)
				})
				group := play(t, tc.run, slow, singleMember(func(e *contract.Environment) { e.Retries = 3 }))
				if group.Outcome != rl.EnvironmentFault || !strings.Contains(group.Reason, tc.want) {
					t.Errorf("outcome %v: %s; want a fault that says %q", group.Outcome, group.Reason, tc.want)
				}
			})
		})
	}
}

func returns(turn environment.Turn, err error) program {
	return func(context.Context, environment.Policy) (environment.Turn, error) { return turn, err }
}

// abandon makes a request and ends without waiting for the reply.
func abandon(ctx context.Context, p environment.Policy) (environment.Turn, error) {
	go func() { _, _ = p.Chat(ctx, ask("q")[0]) }()
	synctest.Wait()
	return done(1), nil
}

func TestLimitsOfPrograms(t *testing.T) {
	alone := program(func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
		return done(1), talk(ctx, p, "", "", 5)
	})
	caught := program(func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
		err := talk(ctx, p, "", "", 5)
		if limit := (*environment.LimitError)(nil); !errors.As(err, &limit) || limit.Limit != "turns" {
			return environment.Turn{}, fmt.Errorf("the limit is %w", err)
		}
		return done(0.25), nil
	})
	cases := map[string]struct {
		run    program
		change func(*contract.Environment)
		want   rl.Outcome
		reward float64
		stop   string
		turns  int
	}{
		"turns, caught": {caught, func(e *contract.Environment) {
			e.Limits = playing.Limits{Turns: 2, OnLimit: playing.LimitExclude}
		}, rl.Usable, 0.25, "turns", 2},
		"turns": {alone, func(e *contract.Environment) {
			e.Limits.Turns, e.Reward.Nonterminal = 2, new(-1.0)
		}, rl.Usable, -1, "turns", 2},
		"turns without a reward": {alone, func(e *contract.Environment) { e.Limits.Turns = 2 }, rl.Deadline, 0, "", 0},
		"turns that earn zero": {alone, func(e *contract.Environment) {
			e.Limits = playing.Limits{Turns: 3, OnLimit: playing.LimitZero}
		}, rl.Usable, 0, "turns", 3},
		"requests": {alone, func(e *contract.Environment) {
			e.Limits.Requests, e.Reward.Nonterminal = 4, new(-1.0)
		}, rl.Usable, -1, "requests", 4},
		"tokens of a trajectory": {alone, func(e *contract.Environment) {
			e.Limits.TrajectoryTokens, e.Reward.Nonterminal = 30, new(-1.0)
		}, rl.Usable, -1, "trajectory_tokens", 1},
		"tokens of the prompt": {alone, func(e *contract.Environment) {
			e.Limits.PromptTokens, e.Reward.Nonterminal = 3, new(-1.0)
		}, rl.Usable, -1, "prompt_tokens", 0},
		"turns of one of several": {debate, func(e *contract.Environment) {
			e.Limits.Turns, e.Reward.Nonterminal = 1, new(-1.0)
		}, rl.Deadline, 0, "", 0},
		"requests of several": {debate, func(e *contract.Environment) {
			e.Limits.Requests, e.Reward.Nonterminal = 5, new(-1.0)
		}, rl.Deadline, 0, "", 0},
		"as many as there are": {debate, func(e *contract.Environment) { e.Limits.Requests, e.Limits.Turns = 8, 2 },
			rl.Usable, 10, "stop", 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			group := play(t, tc.run, says("yes"), singleMember(tc.change))
			if tc.want != rl.Usable {
				if group.Outcome != tc.want {
					t.Errorf("outcome %v: %s, want %v", group.Outcome, group.Reason, tc.want)
				}
				return
			}
			m := group.Members[0]
			if group.Outcome != rl.Usable || m.Reward != tc.reward || m.StopReason != tc.stop || m.Turns != tc.turns {
				t.Errorf("outcome %v: %s, member %+v; want the reward %v, stop %s and %d turns", group.Outcome, group.Reason, m,
					tc.reward, tc.stop, tc.turns)
			}
		})
	}
}

// TestTimeOfPrograms checks that the clock runs while the program works or the policy samples, and stops while all
// requests are queued. The time of replies that are sampled together counts once.
func TestTimeOfPrograms(t *testing.T) {
	parallel := func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
		together, ctx := errgroup.WithContext(ctx)
		for i := range 4 {
			together.Go(func() error { return talk(ctx, p, "", fmt.Sprint(i), 2) })
		}
		return done(1), together.Wait()
	}
	working := func(work time.Duration) program {
		return func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
			for range 3 {
				if err := talk(ctx, p, "", "", 1); err != nil {
					return environment.Turn{}, err
				}
				if err := wait.Sleep(ctx, work); err != nil {
					return environment.Turn{}, err
				}
			}
			return done(1), nil
		}
	}
	cases := map[string]struct {
		run           program
		queued, takes time.Duration
		seconds       int32
		want          rl.Outcome
	}{
		"a queue of a day":              {parallel, 24 * time.Hour, time.Second, 10, rl.Usable},
		"samples together":              {parallel, 0, 4 * time.Second, 10, rl.Usable},
		"samples that take too long":    {parallel, 0, 6 * time.Second, 10, rl.Deadline},
		"samples after one another":     {working(0), time.Hour, 3 * time.Second, 10, rl.Usable},
		"too many after one another":    {working(0), time.Hour, 4 * time.Second, 10, rl.Deadline},
		"a program that works":          {working(3 * time.Second), time.Hour, 0, 10, rl.Usable},
		"one that works too long":       {working(4 * time.Second), time.Hour, 0, 10, rl.Deadline},
		"both":                          {working(2 * time.Second), time.Hour, 2 * time.Second, 11, rl.Deadline},
		"no limit and much time":        {working(9 * time.Minute), time.Hour, time.Hour, 0, rl.Usable},
		"no limit and a program asleep": {working(11 * time.Minute), time.Hour, time.Hour, 0, rl.EnvironmentFault},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := policyFunc(func(ctx context.Context, _ Request) (Sample, error) {
					sample := sampled("yes")
					sample.Took = tc.takes
					return sample, wait.Sleep(ctx, tc.queued+tc.takes)
				})
				group := play(t, tc.run, policy, singleMember(func(e *contract.Environment) {
					e.Limits.EpisodeSeconds = tc.seconds
				}))
				if group.Outcome != tc.want {
					t.Errorf("outcome %v: %s, want %v", group.Outcome, group.Reason, tc.want)
				}
			})
		})
	}
}

// TestSamplesThatOverlap counts the time of replies that arrive one second apart and took a while each.
func TestSamplesThatOverlap(t *testing.T) {
	cases := map[string]struct {
		took []time.Duration
		want time.Duration
	}{
		"apart":                 {[]time.Duration{time.Second / 2, time.Second / 2, time.Second / 2}, 3 * time.Second / 2},
		"one over the other":    {[]time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second}, 4 * time.Second},
		"one around all":        {[]time.Duration{time.Second / 2, time.Second / 2, 5 * time.Second}, 5 * time.Second},
		"one within an earlier": {[]time.Duration{9 * time.Second, 5 * time.Second, time.Second}, 11 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := startClock(time.Hour, func() {})
				clock.pause()
				for _, took := range tc.took {
					time.Sleep(time.Second)
					clock.count(took)
				}
				if got := clock.stop(); got != tc.want {
					t.Errorf("the clock has run for %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestProgramWithALimitOfToolCallsIsRefused(t *testing.T) {
	group := play(t, program(debate), says("yes"), singleMember(func(e *contract.Environment) { e.Limits.ToolCalls = 1 }))
	if group.Outcome != rl.EnvironmentFault || !strings.Contains(group.Reason, "remove limits.toolCalls") {
		t.Errorf("outcome %v: %s, want a fault that says so", group.Outcome, group.Reason)
	}
}

func TestProgramWithASharedPromptIsRefused(t *testing.T) {
	group := play(t, program(debate), says("yes"), sharing(2))
	if group.Outcome != rl.EnvironmentFault || !strings.Contains(group.Reason, "remove sampling.sharedPrompt") {
		t.Errorf("outcome %v: %s, want a fault that says so", group.Outcome, group.Reason)
	}
}

// TestProgramInTokens plays a program with its own renderer: its tokens are trained on as they are.
func TestProgramInTokens(t *testing.T) {
	var asked []Request
	policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
		asked = append(asked, request)
		return Sample{Tokens: []int32{7, 8}, Logprobs: []float32{-1, -2}, Stopped: len(asked) == 1}, nil
	})
	run := func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
		first, err := p.Sample(ctx, environment.TokenPrompt{Tokens: []int32{1, 2}, StopTokens: []int32{8}})
		if err != nil || first.Truncated {
			return environment.Turn{}, fmt.Errorf("the first reply is %+v: %w", first, err)
		}
		next := append([]int32{1, 2}, first.Tokens...)
		second, err := p.Sample(ctx, environment.TokenPrompt{Tokens: append(next, 3), StopStrings: []string{"\n"}})
		if err != nil || !second.Truncated {
			return environment.Turn{}, fmt.Errorf("the second reply is %+v: %w", second, err)
		}
		return done(1), nil
	}
	m := play(t, program(run), policy, singleMember(nil)).Members[0]
	want := []rl.Segment{{Tokens: []int32{1, 2, 7, 8, 3, 7, 8},
		Actions:  []bool{false, false, true, true, false, true, true},
		Logprobs: []float32{0, 0, -1, -2, 0, -1, -2}}}
	if diff := cmp.Diff(want, segmentsOf(m)); diff != "" || m.StopReason != stopLength {
		t.Errorf("stop reason %s, segments (-want +got):\n%s", m.StopReason, diff)
	}
	if stop := asked[0].Stop; !cmp.Equal(stop.Tokens, []int32{8}) || len(stop.Strings) != 0 {
		t.Errorf("the first request has the stop %+v, want the token 8", stop)
	}
	if stop := asked[1].Stop; !cmp.Equal(stop.Strings, []string{"\n"}) || len(stop.Tokens) != 0 {
		t.Errorf("the second request has the stop %+v, want a new line", stop)
	}
}

// TestRefusalsOfPrograms checks that the refusal of a program's request ends the member.
func TestRefusalsOfPrograms(t *testing.T) {
	policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
		if request.Conversation == "b" {
			return Sample{}, &RefusedError{Err: errors.New("too long")}
		}
		return sampled("yes"), nil
	})
	if group := play(t, program(debate), policy, singleMember(nil)); group.Outcome != rl.InvalidTokens {
		t.Errorf("outcome %v: %s, want invalid tokens", group.Outcome, group.Reason)
	}
}
