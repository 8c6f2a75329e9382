// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// FieldError reports which field of a group is wrong.
type FieldError struct {
	// Field is a path such as members[2].segments[0].logprobs.
	Field string
	// Problem completes the sentence that Field begins.
	Problem string
}

// Error returns the field and its problem.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

const (
	// MaxTrajectories bounds the trajectories of a member.
	MaxTrajectories = 1024
	// maxName bounds the name of a role and the key of a conversation, in bytes.
	maxName = 63
)

// MaxMembers bounds the members of a group.
const MaxMembers = 1024

// Validate checks a group by itself, whoever made it. The error is a *FieldError.
func (g Group) Validate() error {
	if err := g.Key.validate(); err != nil {
		return err
	}
	if !g.Outcome.IsValid() {
		return fieldErrorf("outcome", "%d is invalid", g.Outcome)
	}
	if j := g.Judge; min(g.PromptTokens, g.SampledTokens, j.Calls, j.Errors, j.Unreadable, j.PromptTokens,
		j.SampledTokens) < 0 {
		return fieldErrorf("usage", "is negative")
	}
	last := -1
	for i, m := range g.Members {
		field := fmt.Sprintf("members[%d]", i)
		if m.Index <= last || m.Index >= MaxMembers {
			return fieldErrorf(field+".index", "%d is not above the one before it and below %d", m.Index, MaxMembers)
		}
		last = m.Index
		if err := m.validate(field); err != nil {
			return err
		}
	}
	if roles := g.Roles(); len(roles) > contract.MaxRoles {
		return fieldErrorf("members", "have %d roles, more than %d", len(roles), contract.MaxRoles)
	}
	if g.Outcome == Usable && len(g.UsableMembers()) == 0 {
		return fieldErrorf("members", "has no usable one, but the group is usable")
	}
	return nil
}

func (k Key) validate() error {
	switch {
	case k.Kind != Train && k.Kind != Evaluate:
		return fieldErrorf("key.kind", "%d is invalid", k.Kind)
	case k.Slot < 0:
		return fieldErrorf("key.slot", "%d is negative", k.Slot)
	case k.Lineage.IsZero():
		return fieldErrorf("key.lineage", "is missing")
	case k.Kind == Train && k.Evaluation != "":
		return fieldErrorf("key.evaluation", "is given for a training group")
	case k.Kind == Evaluate && k.Evaluation == "":
		return fieldErrorf("key.evaluation", "is missing")
	}
	return nil
}

func (m Member) validate(field string) error {
	switch {
	case !m.Outcome.IsValid():
		return fieldErrorf(field+".outcome", "%d is invalid", m.Outcome)
	case !finite.Is(m.Reward):
		return fieldErrorf(field+".reward", "%v is not finite", m.Reward)
	case m.Turns < 0:
		return fieldErrorf(field+".turns", "is negative")
	case m.PromptTokens < 0 || m.SampledTokens < 0:
		return fieldErrorf(field+".usage", "is negative")
	case m.Retries < 0:
		return fieldErrorf(field+".retries", "is negative")
	}
	switch n := len(m.Trajectories); {
	case m.Outcome == Usable && n == 0:
		return fieldErrorf(field+".trajectories", "are missing, but the member is usable")
	case m.Outcome != Usable && n > 0:
		return fieldErrorf(field+".trajectories", "are given, but the member is not usable")
	case n > MaxTrajectories:
		return fieldErrorf(field+".trajectories", "are %d, more than %d", n, MaxTrajectories)
	}
	for i, t := range m.Trajectories {
		if err := t.validate(fmt.Sprintf("%s.trajectories[%d]", field, i)); err != nil {
			return err
		}
	}
	return nil
}

func (t Trajectory) validate(field string) error {
	switch {
	case !contract.IsRole(t.Role):
		return fieldErrorf(field+".role", "%q is invalid: %s", t.Role, contract.RoleRule)
	case len(t.Key) > maxName || !utf8.ValidString(t.Key):
		return fieldErrorf(field+".key", "is not valid text of at most %d bytes", maxName)
	case !finite.Is(t.Reward):
		return fieldErrorf(field+".reward", "%v is not finite", t.Reward)
	case slices.ContainsFunc(t.StepRewards, func(v float64) bool { return !finite.Is(v) }):
		return fieldErrorf(field+".step_rewards", "has one that is not finite")
	case len(t.Judgements) > MaxJudgements:
		return fieldErrorf(field+".judgements", "are %d, more than %d", len(t.Judgements), MaxJudgements)
	}
	for i, s := range t.Segments {
		path := fmt.Sprintf("%s.segments[%d]", field, i)
		if err := s.validate(path); err != nil {
			return err
		}
		if err := s.validateSteps(path+".steps", len(t.StepRewards)); err != nil {
			return err
		}
	}
	return nil
}

// validateSteps checks the steps of a segment of a trajectory with the given number of steps.
func (s Segment) validateSteps(field string, steps int) error {
	if (len(s.Steps) > 0) != (steps > 0) {
		return fieldErrorf(field, "are given without step_rewards, or the other way round")
	}
	if steps == 0 {
		return nil
	}
	last := Step{Index: -1}
	for _, step := range s.Steps {
		if step.Index <= last.Index || step.Index >= steps || step.End < last.End {
			return fieldErrorf(field, "are not in order, or not those of %d step_rewards", steps)
		}
		last = step
	}
	if last.End != len(s.Tokens) {
		return fieldErrorf(field, "end at token %d of %d", last.End, len(s.Tokens))
	}
	return nil
}

func (s Segment) validate(field string) error {
	n := len(s.Tokens)
	switch {
	case n < 2:
		return fieldErrorf(field+".tokens", "has %d, fewer than 2", n)
	case slices.ContainsFunc(s.Tokens, func(t int32) bool { return t < 0 }):
		return fieldErrorf(field+".tokens", "has a negative one")
	case len(s.Actions) != n:
		return fieldErrorf(field+".actions", "has %d for %d tokens", len(s.Actions), n)
	case s.Actions[0]:
		return fieldErrorf(field+".actions", "begin with the first token, which nothing predicts")
	case !slices.Contains(s.Actions, true):
		return fieldErrorf(field+".actions", "mark no token")
	case s.Turn < 0:
		return fieldErrorf(field+".turn", "is negative")
	}
	if err := validateLogprobs(field+".logprobs", s.Logprobs, n); err != nil {
		return err
	}
	for i, action := range s.Actions {
		if !action && s.Logprobs[i] != 0 {
			return fieldErrorf(field+".logprobs", "is not 0 at token %d, which is not an action", i)
		}
	}
	if s.ReferenceLogprobs != nil {
		if err := validateLogprobs(field+".reference_logprobs", s.ReferenceLogprobs, n); err != nil {
			return err
		}
	}
	if s.TeacherLogprobs != nil {
		return validateLogprobs(field+".teacher_logprobs", s.TeacherLogprobs, n)
	}
	return nil
}

func validateLogprobs(field string, values []float32, n int) error {
	if len(values) != n {
		return fieldErrorf(field, "has %d for %d tokens", len(values), n)
	}
	for i, v := range values {
		if !finite.Is(float64(v)) {
			return fieldErrorf(field, "is %v at token %d", v, i)
		}
	}
	return nil
}
