// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// scoring is a policy that also scores prompts. It records the numbers of these requests.
type scoring struct {
	*seeded
	err    error
	scored []int64
}

func (s *scoring) Logprobs(_ context.Context, request Request, last int) ([]float32, error) {
	s.scored = append(s.scored, request.Number(rl.UsePrompt, 0))
	logprobs := make([]float32, last)
	for i := range logprobs {
		logprobs[i] = -float32(request.Prompt[len(request.Prompt)-last+i])
	}
	return logprobs, s.err
}

// TestPromptsOfAgentsAreScored plays an agent that requests the log-probabilities of prompts, alone or with a reply.
// The prompts are not trained on but counted, and the same prompt is paid for once.
func TestPromptsOfAgentsAreScored(t *testing.T) {
	policy := &scoring{seeded: &seeded{}}
	want := environment.Completed{PromptText: "once", PromptTokens: 4, Truncated: true,
		PromptTexts: []string{"o", "n", "c", "e"}, PromptLogprobs: []float32{-'n', -'c', -'e'}}
	group := playScored(t, func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		asked := environment.Completion{Raw: true, Text: "once", Scored: true, Unanswered: true}
		for range 2 {
			out, err := p.Complete(ctx, asked)
			if err != nil {
				return environment.Turn{}, err
			}
			out.ID = ""
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		}
		if _, err := p.Last(); err == nil {
			t.Error("a request without a reply has the last reply")
		}
		asked.Unanswered, asked.MaxTokens = false, 8
		out, err := p.Complete(ctx, asked)
		if err != nil {
			return environment.Turn{}, err
		}
		if diff := cmp.Diff(want.PromptLogprobs, out.PromptLogprobs); diff != "" || out.Text == "" {
			t.Errorf("with the reply %q (-want +got):\n%s", out.Text, diff)
		}
		asked.Text, asked.Unanswered = "o", true
		out, err = p.Complete(ctx, asked)
		if len(out.PromptTexts) != 1 || len(out.PromptLogprobs) != 0 {
			t.Errorf("the one token of a prompt is scored: %+v", out)
		}
		return done(1), err
	}, policy)
	m := group.Members[0]
	segments := segmentsOf(m)
	if len(segments) != 1 || repliesIn(segments[0].Actions) != 1 || slices.Contains(segments[0].Actions[:4], true) {
		t.Errorf("segments are %v, want one whose reply alone is trained on", segments)
	}
	if len(policy.scored) != 1 {
		t.Errorf("prompts were scored %d times, want once", len(policy.scored))
	}
	if m.Turns != 1 || m.PromptTokens != 4+4+4+4+1 || group.PromptTokens != 4+4 {
		t.Errorf("%d turns, %d prompt tokens of the episode and %d that were bought", m.Turns, m.PromptTokens,
			group.PromptTokens)
	}
}

// TestPromptsThatCannotBeScored checks that only the request is refused if there is no Scorer, or if the endpoint
// refuses it.
func TestPromptsThatCannotBeScored(t *testing.T) {
	for name, by := range map[string]Scorer{
		"nobody": nil, "the endpoint": &scoring{seeded: &seeded{}, err: &RefusedError{Err: errors.New("no such field")}},
	} {
		group := playScored(t, func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
			asked := environment.Completion{Raw: true, Text: "once", Scored: true, Unanswered: true}
			_, err := p.Complete(ctx, asked)
			if refused := (*environment.RequestError)(nil); !errors.As(err, &refused) {
				t.Errorf("%s: got %v, want a refused request", name, err)
			}
			_, err = say(ctx, p, "", user("q"))
			return done(1), err
		}, by)
		if group.Outcome != rl.Usable {
			t.Errorf("%s: the group is %v: %s", name, group.Outcome, group.Reason)
		}
	}
}

// playScored plays an agent with a Scorer of prompts; by is nil if there is none.
func playScored(t *testing.T, run func(context.Context, environment.AgentPolicy) (environment.Turn, error),
	by Scorer) rl.Group {
	t.Helper()
	player := newPlayer(t, agentOf(run), &seeded{})
	player.Prompts = by
	group, err := player.Play(t.Context(), singleMember(nil))
	if err != nil {
		t.Fatal(err)
	}
	return group
}
