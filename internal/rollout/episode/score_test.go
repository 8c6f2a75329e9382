// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// scorerFunc is a Scorer. The function returns the log-probabilities of all tokens of a prompt.
type scorerFunc func(request Request) ([]float32, error)

func (f scorerFunc) Logprobs(_ context.Context, request Request, last int) ([]float32, error) {
	logprobs, err := f(request)
	if err != nil {
		return nil, err
	}
	return logprobs[len(logprobs)-last:], nil
}

// numbered returns the negative place of each token as its log-probability.
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
	player.Reference = scorerFunc(numbered)
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
	player.Reference = scorerFunc(func(request Request) ([]float32, error) {
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
	player.Reference = scorerFunc(func(Request) ([]float32, error) { return nil, missing })
	if _, err := player.Play(t.Context(), game(nil)); !errors.Is(err, missing) {
		t.Errorf("Play = %v, want %v: the group is played later", err, missing)
	}
}

// TestTeacherWithASystemPrompt checks that the teacher reads each conversation with another system message, and the
// replies as they were sampled. Each sampled token has the log-probability of its place in that conversation, also
// over several turns.
func TestTeacherWithASystemPrompt(t *testing.T) {
	twoTurns := &scripted{first: ask("2+2?"), step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
		if turn > 0 {
			return done(1), nil
		}
		next := ask("2+2?")
		next[0].Messages = append(next[0].Messages, replies[0].Message, chat.Message{Role: "user", Content: "Sure?"})
		return environment.Turn{Prompts: next}, nil
	}}
	withSystem := graded()
	withSystem.first = ask("2+2?")
	withSystem.first[0].Messages = slices.Insert(withSystem.first[0].Messages, 0,
		chat.Message{Role: "system", Content: "Be brief."})
	for name, tc := range map[string]struct {
		env  *scripted
		want string
	}{
		"two turns": {twoTurns,
			"System: Think.\n\nUser: 2+2?\n\nAssistant:1|\n\nUser: Sure?\n\nAssistant:1|"},
		"the environment's own is replaced": {withSystem, "System: Think.\n\nUser: 2+2?\n\nAssistant:1|"},
	} {
		t.Run(name, func(t *testing.T) {
			player := newPlayer(t, tc.env, says("1"))
			var mu sync.Mutex
			var read []string
			player.Teacher = scorerFunc(func(request Request) ([]float32, error) {
				mu.Lock()
				defer mu.Unlock()
				read = append(read, written(request.Prompt))
				return numbered(request)
			})
			group, err := player.Play(t.Context(), game(func(g *Spec) {
				g.Settings.Teacher = &algorithm.Teacher{Model: "m", Coefficient: 1, SystemPrompt: "Think."}
			}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want, tc.want}, read); diff != "" {
				t.Errorf("prompts of the teacher (-want +got):\n%s", diff)
			}
			for _, m := range group.Members {
				checkPlaces(t, m, tc.want)
			}
		})
	}
}

// checkPlaces checks that the log-probabilities of a member's sampled tokens are the places of the replies in the text
// that the teacher reads.
func checkPlaces(t *testing.T, m rl.Member, read string) {
	t.Helper()
	var want, got []float32
	for i := range read {
		if read[i] == '|' {
			want = append(want, -float32(i-1), -float32(i))
		}
	}
	for _, s := range segmentsOf(m) {
		if s.ReferenceLogprobs != nil {
			t.Error("there are log-probabilities of a reference")
		}
		for i, sampled := range s.Actions {
			if sampled {
				got = append(got, s.TeacherLogprobs[i])
			} else if s.TeacherLogprobs[i] != 0 {
				t.Errorf("token %d was not sampled, and has %v", i, s.TeacherLogprobs[i])
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log-probabilities (-want +got):\n%s", diff)
	}
}

// written is the text of a prompt, one byte a token; a stop is |.
func written(tokens []int32) string {
	text := make([]byte, len(tokens))
	for i, token := range tokens {
		text[i] = '|'
		if token != end {
			text[i] = byte(token)
		}
	}
	return string(text)
}
