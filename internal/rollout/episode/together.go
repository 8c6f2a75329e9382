// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// gradeTogether scores together the members whose episodes ended without a reward of their own, in the order of their
// indexes, once all have ended. The run's settings of rewards and limits apply afterwards. If scoring fails twice for
// the same replies, each of these members has the fault.
func (p *Player) gradeTogether(ctx context.Context, spec Spec, members []rl.Member, reasons []string) error {
	var held []*episode
	var replies []environment.Reply
	for _, e := range spec.ungraded {
		if e != nil {
			held, replies = append(held, e), append(replies, *e.ungraded)
		}
	}
	if len(held) == 0 {
		return nil
	}
	turns, err := p.gradeReplies(ctx, spec, held[0], replies)
	if err != nil && ctx.Err() == nil {
		turns, err = p.gradeReplies(ctx, spec, held[0], replies)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, e := range held {
		failure := err
		var turn environment.Turn
		if failure == nil {
			turn = turns[i]
		}
		members[e.member], reasons[e.member] = e.conclude(members[e.member], turn, failure)
	}
	return nil
}

// gradeReplies calls GradeGroup of the environment, within callTimeout. An error is a *environment.Fault, or the
// context's.
func (p *Player) gradeReplies(ctx context.Context, spec Spec, first *episode,
	replies []environment.Reply) ([]environment.Turn, error) {
	grader, ok := p.Environment.(environment.GroupGrader)
	if !ok {
		return nil, &environment.Fault{Permanent: true, Err: errors.New("the environment does not score its episodes")}
	}
	task := environment.Task{Split: spec.Split, Index: spec.Task}
	turns, _, err := callWithin(ctx, first, "GradeGroup", callTimeout,
		func(ctx context.Context) ([]environment.Turn, error) { return grader.GradeGroup(ctx, task, replies) })
	if err == nil && len(turns) != len(replies) {
		err = &environment.Fault{Permanent: true, Err: fmt.Errorf("the environment scores %d episodes of %d", len(turns),
			len(replies))}
	}
	return turns, err
}

// conclude returns the member of an episode that was scored with its group, and why it is not usable.
func (e *episode) conclude(held rl.Member, turn environment.Turn, err error) (rl.Member, string) {
	m, reason := rl.Member{}, ""
	if err == nil {
		err = e.record(turn)
	}
	if err == nil {
		e.recordResults(turn, e.limit == "")
		m, reason, err = e.graded(e.limit)
	}
	if err != nil {
		m, reason = rl.Member{Outcome: outcomeOf(environment.AsFault(err))}, err.Error()
	}
	m.Index, m.Retries, m.Transcript = held.Index, held.Retries, e.transcript(reason)
	// The segments of the member that was held have the log-probabilities of the reference.
	for i := range m.Trajectories {
		segments := held.Trajectories[i].Segments
		for j := range segments {
			segments[j].Steps = m.Trajectories[i].Segments[j].Steps
		}
		m.Trajectories[i].Segments = segments
	}
	return m, reason
}
