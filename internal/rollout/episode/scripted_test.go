// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/singleturn"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

const end = 256

// scripted is an environment whose episodes are played by its functions.
type scripted struct {
	start  func(task environment.Task) error
	first  []environment.Prompt
	step   func(turn int, replies []environment.Reply) (environment.Turn, error)
	finish func() (environment.Turn, error)

	mu             sync.Mutex
	opened, closed int
}

func (s *scripted) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (s *scripted) Start(_ context.Context, task environment.Task) (environment.Episode, error) {
	if s.start != nil {
		if err := s.start(task); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &scriptedEpisode{env: s}, nil
}

type scriptedEpisode struct {
	env  *scripted
	turn int
}

func (e *scriptedEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	if e.env.first == nil {
		return ask("q"), nil
	}
	return e.env.first, nil
}

func (e *scriptedEpisode) Step(_ context.Context, replies []environment.Reply) (environment.Turn, error) {
	e.turn++
	return e.env.step(e.turn-1, replies)
}

func (e *scriptedEpisode) Finish(context.Context) (environment.Turn, error) {
	if e.env.finish == nil {
		return environment.Turn{Done: true}, nil
	}
	return e.env.finish()
}

func (e *scriptedEpisode) Close(context.Context) {
	e.env.mu.Lock()
	defer e.env.mu.Unlock()
	e.env.closed++
}

// policyFunc is a Policy.
type policyFunc func(ctx context.Context, request Request) (Sample, error)

func (f policyFunc) Sample(ctx context.Context, request Request) (Sample, error) {
	return f(ctx, request)
}

// SampleGroup makes a request for each member, and returns its reply.
func (f policyFunc) SampleGroup(ctx context.Context, request Request, members int) ([]Sample, error) {
	samples := make([]Sample, members)
	for i := range samples {
		own := request
		own.Member += i
		var err error
		if samples[i], err = f(ctx, own); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// says is a policy that always gives the same text.
func says(text string) policyFunc {
	return func(context.Context, Request) (Sample, error) { return sampled(text), nil }
}

// sampled is a reply that ends.
func sampled(text string) Sample {
	s := Sample{Tokens: append(bytesOf(text), end), Stopped: true}
	for i := range s.Tokens {
		s.Logprobs = append(s.Logprobs, -float32(i+1)/8)
	}
	return s
}

func bytesOf(text string) []int32 {
	var ids []int32
	for i := range len(text) {
		ids = append(ids, int32(text[i]))
	}
	return ids
}

// ask returns one prompt of the only role.
func ask(texts ...string) []environment.Prompt {
	prompt := environment.Prompt{}
	for i, text := range texts {
		role := []string{"user", "assistant"}[i%2]
		prompt.Messages = append(prompt.Messages, chat.Message{Role: role, Content: text})
	}
	return []environment.Prompt{prompt}
}

// segmentsOf lists the segments of a member's trajectories.
func segmentsOf(m rl.Member) []rl.Segment {
	var segments []rl.Segment
	for _, t := range m.Trajectories {
		segments = append(segments, t.Segments...)
	}
	return segments
}

// done is a turn that ends the episode with a reward.
func done(reward float64) environment.Turn {
	return environment.Turn{Rewards: []environment.Reward{{Value: reward}}, Done: true}
}

// open is a gate without a limit.
type open struct{}

func (open) Enter(ctx context.Context) error { return ctx.Err() }
func (open) Leave()                          {}

func settings() contract.Environment {
	return contract.Environment{
		Name:     "env",
		Sampling: playing.Sampling{MaxTokens: 16, Temperature: new(1.0), TopP: 1},
		Reward:   playing.EpisodeReward{Reduction: "Sum"},
	}
}

// game returns a group of two members, both of which must be usable.
func game(change func(*Spec)) Spec {
	g := Spec{
		Key:       rl.Key{Slot: 7, Lineage: rl.Genesis("spec")},
		Settings:  settings(),
		Split:     "train",
		GroupSize: 2, MinMembers: 2,
		Seed: 42,
	}
	if change != nil {
		change(&g)
	}
	return g
}

func newPlayer(t *testing.T, env environment.Environment, policy Policy) *Player {
	t.Helper()
	r, err := families.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	return &Player{Environment: env, Renderer: r, Policy: policy, Gate: open{}, Progress: &Progress{}}
}

// play plays a game that must end.
func play(t *testing.T, env environment.Environment, policy Policy, g Spec) rl.Group {
	t.Helper()
	group, err := newPlayer(t, env, policy).Play(t.Context(), g)
	if err != nil {
		t.Fatalf("Play: %v", err)
	}
	if err := group.Validate(); err != nil {
		t.Fatalf("the group is not valid: %v", err)
	}
	if s, ok := env.(*scripted); ok && s.opened != s.closed {
		t.Errorf("%d episodes were begun, %d closed", s.opened, s.closed)
	}
	return group
}

func arithmetic(t *testing.T) environment.Environment {
	t.Helper()
	rows, err := dataset.NewArithmetic(99)
	if err != nil {
		t.Fatal(err)
	}
	return singleturn.New(rows, verify.ExactMatch{})
}

// member names a request by its conversation, member, turn and try.
func member(request Request) string {
	name := fmt.Sprintf("%d/%d/%d", request.Member, request.Turn, request.Try)
	return strings.TrimSpace(request.Conversation + " " + name)
}
