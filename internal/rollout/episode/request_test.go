// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// seeded is a policy whose replies depend only on the seeds of requests. It records the requests.
type seeded struct {
	mu       sync.Mutex
	requests []Request
}

func (s *seeded) Sample(_ context.Context, request Request) (Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	return sampled(fmt.Sprint(request.Seed(rl.UsePolicy, 42) % 1000)), nil
}

func (s *seeded) SampleGroup(ctx context.Context, request Request, members int) ([]Sample, error) {
	return policyFunc(s.Sample).SampleGroup(ctx, request, members)
}

// numbers lists the numbers of the requests, sorted.
func (s *seeded) numbers() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var numbers []int64
	for _, request := range s.requests {
		numbers = append(numbers, request.Number(rl.UsePolicy, 0))
	}
	slices.Sort(numbers)
	return numbers
}

// TestRequestsDoNotDependOnTheOrderOfConversations lists the prompts of an environment in another order, and checks
// that members, rewards and requests stay the same.
func TestRequestsDoNotDependOnTheOrderOfConversations(t *testing.T) {
	played := func(reversed bool) (rl.Group, []int64) {
		prompts := func() []environment.Prompt {
			list := []environment.Prompt{promptOf("solver", "a"), promptOf("solver", "b"), promptOf("judge", "c")}
			if reversed {
				slices.Reverse(list)
			}
			return list
		}
		env := &scripted{first: prompts(), step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
			if turn < 2 {
				return environment.Turn{Prompts: prompts()}, nil
			}
			out := environment.Turn{Done: true}
			for _, reply := range replies {
				out.Rewards = append(out.Rewards, environment.Reward{Conversation: reply.Conversation,
					Value: float64(reply.Seed % 100)})
			}
			return out, nil
		}}
		policy := &seeded{}
		return play(t, env, policy, singleMember(nil)), policy.numbers()
	}
	want, numbers := played(false)
	got, others := played(true)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the group (-one order +the other):\n%s", diff)
	}
	if diff := cmp.Diff(numbers, others); diff != "" {
		t.Errorf("the numbers of requests (-one order +the other):\n%s", diff)
	}
	if distinct := slices.Compact(slices.Clone(numbers)); len(distinct) != 9 {
		t.Errorf("9 requests, 3 equal ones from each of 3 conversations, have %d numbers", len(distinct))
	}
}

// TestRequestsOfFurtherTries checks that a further try has requests of its own, and that a try that begins again has
// the same requests.
func TestRequestsOfFurtherTries(t *testing.T) {
	for name, tc := range map[string]struct {
		fault environment.Fault
		want  int
	}{
		"a fault":            {environment.Fault{Err: errPromptsDiffer}, 2},
		"an unavailable one": {environment.Fault{Err: errPromptsDiffer, Unavailable: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			failed := false
			env := &scripted{step: func(int, []environment.Reply) (environment.Turn, error) {
				if !failed {
					failed = true
					return environment.Turn{}, &tc.fault
				}
				return done(1), nil
			}}
			policy := &seeded{}
			play(t, env, policy, singleMember(func(e *contract.Environment) { e.Retries = 1 }))
			if got := slices.Compact(policy.numbers()); len(got) != tc.want || len(policy.requests) != 2 {
				t.Errorf("%d requests have %d numbers, want 2 that have %d", len(policy.requests), len(got), tc.want)
			}
		})
	}
}
