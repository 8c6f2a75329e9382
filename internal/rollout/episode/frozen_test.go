// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// frozenTeacher is a model beside the policy. Its replies contain the seed.
type frozenTeacher struct {
	mu    sync.Mutex
	seeds []uint64
	err   error
}

func (f *frozenTeacher) Complete(_ context.Context, asked environment.Completion,
	seed uint64) (environment.Completed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seeds = append(f.seeds, seed)
	return environment.Completed{Message: chat.Message{Role: chat.RoleAssistant, Content: fmt.Sprint("taught ", seed)},
		PromptTokens: len(asked.Messages), Tokens: []int32{1, 2, 3}}, f.err
}

func (f *frozenTeacher) CountTokens(context.Context, environment.Completion) (int, error) {
	return 7, nil
}

// askFrozen asks a model beside the policy.
func askFrozen(ctx context.Context, p environment.AgentPolicy, model environment.FrozenModel,
	text string) (environment.Completed, error) {
	return p.Complete(ctx, environment.Completion{FrozenName: "teacher", Frozen: model,
		Messages: []chat.Message{user(text)}})
}

// TestFrozenModelsAreNotTrained plays an agent that also asks a frozen model. Nothing of that model is trained on, its
// tokens count as a judge's, and its replies are in the transcript. The requests and the last reply of the policy
// equal those of an agent that did not ask it.
func TestFrozenModelsAreNotTrained(t *testing.T) {
	want := &seeded{}
	alone := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		_, err := say(ctx, p, "", user("q"))
		return done(1), err
	}), want, singleMember(nil))
	got, teacher := &seeded{}, &frozenTeacher{}
	spec := singleMember(nil)
	spec.Transcript = true
	group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		messages, err := say(ctx, p, "", user("q"))
		if err != nil {
			return environment.Turn{}, err
		}
		var said []string
		for range 2 { // The same is asked twice, and is sampled twice.
			out, err := askFrozen(ctx, p, teacher, "Is it right?")
			if err != nil {
				return environment.Turn{}, err
			}
			said = append(said, out.Message.Content)
		}
		if said[0] == said[1] {
			t.Errorf("two samples are both %q", said[0])
		}
		last, err := p.Last()
		if last.Message.Content != messages[1].Content {
			t.Errorf("the last reply is %q, want %q", last.Message.Content, messages[1].Content)
		}
		count, countErr := p.CountTokens(environment.Completion{FrozenName: "teacher", Frozen: teacher})
		if count != 7 {
			t.Errorf("the count of tokens is %d, want 7", count)
		}
		return done(1), errors.Join(err, countErr)
	}), got, spec)
	if diff := cmp.Diff(want.numbers(), got.numbers()); diff != "" {
		t.Errorf("the numbers of the policy's requests (-alone +beside):\n%s", diff)
	}
	if diff := cmp.Diff(alone.Members[0].Trajectories, group.Members[0].Trajectories); diff != "" {
		t.Errorf("training data (-alone +beside):\n%s", diff)
	}
	if diff := cmp.Diff(rl.JudgeUsage{Calls: 2, PromptTokens: 2, SampledTokens: 6}, group.Judge); diff != "" {
		t.Errorf("the judge's usage (-want +got):\n%s", diff)
	}
	if group.PromptTokens != alone.PromptTokens || group.SampledTokens != alone.SampledTokens {
		t.Errorf("the policy's tokens are %d and %d, want %d and %d", group.PromptTokens, group.SampledTokens,
			alone.PromptTokens, alone.SampledTokens)
	}
	for _, part := range []string{`"frozen/teacher/1"`, `"frozen/teacher/2"`, "Is it right?", "taught "} {
		if text := string(group.Members[0].Transcript); !strings.Contains(text, part) {
			t.Errorf("the transcript lacks %s: %s", part, text)
		}
	}
}

// TestFrozenModelsInAnInterruptedTry checks that a try that is played several times asks and pays for a frozen model
// once.
func TestFrozenModelsInAnInterruptedTry(t *testing.T) {
	teacher, plays := &frozenTeacher{}, 0
	group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		if _, err := say(ctx, p, "", user("q")); err != nil {
			return environment.Turn{}, err
		}
		if _, err := askFrozen(ctx, p, teacher, "Is it right?"); err != nil {
			return environment.Turn{}, err
		}
		if plays++; plays < 3 {
			return environment.Turn{}, &environment.Fault{Interrupted: true, Err: errors.New("an outage")}
		}
		return done(1), nil
	}), &seeded{}, singleMember(nil))
	if len(teacher.seeds) != 1 || group.Judge.Calls != 1 || plays != 3 {
		t.Errorf("%d plays asked %d times and counted %+v, want one request", plays, len(teacher.seeds), group.Judge)
	}
}

// TestFrozenModelsThatCannotAnswer checks that only the request fails if there is no model or the model refuses it, and
// that the member is left out if the model has a fault.
func TestFrozenModelsThatCannotAnswer(t *testing.T) {
	broken := &environment.Fault{Kind: environment.JudgeFault, Permanent: true, Err: errors.New("broken")}
	for name, tc := range map[string]struct {
		model   environment.FrozenModel
		outcome rl.Outcome
	}{
		"nobody":                 {nil, rl.Usable},
		"a request that is bad":  {&frozenTeacher{err: &environment.RequestError{Message: "No."}}, rl.Usable},
		"a model that is broken": {&frozenTeacher{err: broken}, rl.JudgeFault},
	} {
		group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
			if _, err := say(ctx, p, "", user("q")); err != nil {
				return environment.Turn{}, err
			}
			_, err := askFrozen(ctx, p, tc.model, "Is it right?")
			if refused := (*environment.RequestError)(nil); errors.As(err, &refused) {
				err = nil
			}
			return done(1), err
		}), &seeded{}, singleMember(nil))
		if got := group.Members[0].Outcome; got != tc.outcome {
			t.Errorf("%s: the outcome is %v (%s), want %v", name, got, group.Reason, tc.outcome)
		}
	}
}
