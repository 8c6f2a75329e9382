// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// score sets the log-probabilities of the reference and of the teacher in all segments of a member that has ended.
// The tokens that reference and teacher read are not among the tokens of the group.
func (e *episode) score(ctx context.Context, m rl.Member) error {
	together, ctx := errgroup.WithContext(ctx)
	for _, t := range m.Trajectories {
		segments := t.Segments
		if by := e.player.Reference; by != nil {
			e.ask(ctx, together, by, t.Key, segments, func(logprobs []float32) {
				fill(segments, logprobs, func(s *rl.Segment) *[]float32 { return &s.ReferenceLogprobs })
			})
		}
		if by := e.player.Teacher; by != nil {
			read := segments
			if e.isReadOtherwise() {
				read = e.conversations[t.Key].taught.Segments()
			}
			if sampledOf(read) != sampledOf(segments) {
				return permanent("environments[%s].teacher.systemPrompt needs prompts that are messages, and conversation %q "+
					"has others: remove systemPrompt", e.spec.Settings.Name, t.Key)
			}
			e.ask(ctx, together, by, t.Key, read, func(logprobs []float32) {
				fill(segments, logprobs, func(s *rl.Segment) *[]float32 { return &s.TeacherLogprobs })
			})
		}
	}
	return together.Wait()
}

// ask starts a goroutine that asks a scorer for the log-probabilities of all sampled tokens of segments. take
// receives them in order.
func (e *episode) ask(ctx context.Context, together *errgroup.Group, by Scorer, key string, segments []rl.Segment,
	take func([]float32)) {
	c := conversation{key: key}
	requests := make([]Request, len(segments))
	for i, s := range segments {
		requests[i] = Request{Prompt: s.Tokens}
		c.identify(&requests[i], e.spec.Key, e.member, e.try)
	}
	together.Go(func() error {
		answers := make([][]float32, len(segments))
		each, ctx := errgroup.WithContext(ctx)
		for i, s := range segments {
			each.Go(func() (err error) {
				answers[i], err = e.sampledLogprobs(ctx, by, requests[i], s)
				return err
			})
		}
		if err := each.Wait(); err != nil {
			return err
		}
		take(slices.Concat(answers...))
		return nil
	})
}

// sampledLogprobs returns the log-probabilities of the sampled tokens of a segment.
func (e *episode) sampledLogprobs(ctx context.Context, by Scorer, request Request, s rl.Segment) ([]float32, error) {
	first := slices.Index(s.Actions, true)
	logprobs, err := by.Logprobs(ctx, request, len(s.Tokens)-first)
	if err != nil {
		return nil, err
	}
	if len(logprobs) != len(s.Tokens)-first {
		return nil, fmt.Errorf("scoring segment of turn %d: %d log-probabilities for %d tokens", s.Turn, len(logprobs),
			len(s.Tokens)-first)
	}
	var sampled []float32
	for i, v := range logprobs {
		if s.Actions[first+i] {
			sampled = append(sampled, v)
		}
	}
	return sampled, nil
}

// fill sets the log-probability of each sampled token of the segments; other tokens have 0.
func fill(segments []rl.Segment, logprobs []float32, field func(*rl.Segment) *[]float32) {
	for i := range segments {
		values := make([]float32, len(segments[i].Tokens))
		for j, sampled := range segments[i].Actions {
			if sampled {
				values[j], logprobs = logprobs[0], logprobs[1:]
			}
		}
		*field(&segments[i]) = values
	}
}

// sampledOf counts the sampled tokens of segments.
func sampledOf(segments []rl.Segment) (n int) {
	for _, s := range segments {
		for _, sampled := range s.Actions {
			if sampled {
				n++
			}
		}
	}
	return n
}

// isReadOtherwise reports whether the teacher reads other prompts than the policy.
func (e *episode) isReadOtherwise() bool {
	return e.player.Teacher != nil && e.spec.Settings.Teacher.SystemPrompt != ""
}

// taughtPrompt renders a prompt as the teacher reads it, with earlier replies of the policy as they were sampled. It is
// nil where teacher and policy read the same prompt.
func (e *episode) taughtPrompt(c *conversation, prompt environment.Prompt) ([]int32, error) {
	if !e.isReadOtherwise() {
		return nil, nil
	}
	prompt.Messages = instructed(prompt.Messages, e.spec.Settings.Teacher.SystemPrompt)
	ids, err := e.player.Renderer.Prompt(c.render(prompt, &c.taughtRendered))
	if err != nil {
		return nil, &FormatError{Err: fmt.Errorf("rendering the prompt with environments[%s].teacher.systemPrompt: %w",
			e.spec.Settings.Name, err), sampled: e.requests > 0}
	}
	c.taught.Share(ids)
	return ids, nil
}

// instructed returns messages that begin with the given system message, in place of their own if they have one.
func instructed(messages []chat.Message, text string) []chat.Message {
	system := chat.Message{Role: chat.RoleSystem, Content: text}
	if len(messages) > 0 && messages[0].Role == chat.RoleSystem {
		messages = messages[1:]
	}
	return append([]chat.Message{system}, messages...)
}

// addTaught adds a turn as the teacher reads it.
func (c *conversation) addTaught(request Request, sample Sample) (err error) {
	if request.Taught == nil {
		return nil
	}
	c.taughtRendered.IDs, err = c.taught.Append(rl.Transition{Turn: request.Turn, Observation: request.Taught,
		Action: sample.Tokens, Logprobs: sample.Logprobs})
	return err
}

// maskLast keeps the last reply out of the loss.
func (c *conversation) maskLast() {
	c.segments.MaskLast()
	c.taught.MaskLast()
}
