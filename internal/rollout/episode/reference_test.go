// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// referenceFunc is a Reference.
type referenceFunc func(request Request) ([]float32, error)

func (f referenceFunc) Logprobs(_ context.Context, request Request) ([]float32, error) {
	return f(request)
}

// numbered gives each token its place, below 0.
func numbered(request Request) ([]float32, error) {
	logprobs := make([]float32, len(request.Prompt))
	for i := range logprobs {
		logprobs[i] = -float32(i)
	}
	return logprobs, nil
}

// graded is an environment of one reply, which earns 1.
func graded() *scripted {
	return &scripted{step: func(int, []environment.Reply) (environment.Turn, error) { return done(1), nil }}
}

func TestReferenceLogprobsAreThoseOfSampledTokens(t *testing.T) {
	player := newPlayer(t, graded(), says("1"))
	player.Reference = referenceFunc(numbered)
	group, err := player.Play(t.Context(), game(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := group.Validate(); err != nil {
		t.Errorf("the group is not valid: %v", err)
	}
	plain := play(t, graded(), says("1"), game(nil))
	tokens := int64(0)
	for _, m := range group.Members {
		for _, s := range segmentsOf(m) {
			tokens += int64(len(s.Tokens))
			for i, got := range s.ReferenceLogprobs {
				if want := -float32(i); s.Actions[i] && got != want || !s.Actions[i] && got != 0 {
					t.Errorf("token %d, sampled %v, has %v", i, s.Actions[i], got)
				}
			}
			if len(s.ReferenceLogprobs) != len(s.Tokens) || !slices.Contains(s.Actions, true) {
				t.Errorf("%d log-probabilities for %d tokens", len(s.ReferenceLogprobs), len(s.Tokens))
			}
		}
	}
	if got := group.PromptTokens - plain.PromptTokens; got != 0 || tokens == 0 {
		t.Errorf("%d of the %d tokens that the reference reads are counted as the group's", got, tokens)
	}
	if got := group.Members[0].PromptTokens; got != plain.Members[0].PromptTokens {
		t.Errorf("the member counts %d prompt tokens, want its own %d alone", got, plain.Members[0].PromptTokens)
	}
}

func TestFailuresOfTheReference(t *testing.T) {
	refused := &RefusedError{Err: errors.New("too long")}
	player := newPlayer(t, graded(), says("1"))
	player.Reference = referenceFunc(func(request Request) ([]float32, error) {
		if request.Member == 1 {
			return nil, refused
		}
		return numbered(request)
	})
	group, err := player.Play(t.Context(), game(func(g *Spec) { g.MinMembers = 1 }))
	if err != nil || group.Members[1].Outcome != rl.InvalidTokens || group.Members[0].Outcome != rl.Usable {
		t.Errorf("members %+v, %v; want the second left out", group.Members, err)
	}
	missing := errors.New("the policy cannot be sampled")
	player = newPlayer(t, graded(), says("1"))
	player.Reference = referenceFunc(func(Request) ([]float32, error) { return nil, missing })
	if _, err := player.Play(t.Context(), game(nil)); !errors.Is(err, missing) {
		t.Errorf("Play gives %v, want %v: the group is played later", err, missing)
	}
}
