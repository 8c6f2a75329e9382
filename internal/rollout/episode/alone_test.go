// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestMembersInTurn checks that members that are played in turn are never in play together, that members known as
// faults are not played, and that the group otherwise equals a group whose members are played at once.
func TestMembersInTurn(t *testing.T) {
	var inPlay, most atomic.Int64
	env := &scripted{step: func(int, []environment.Reply) (environment.Turn, error) {
		most.Store(max(most.Load(), inPlay.Add(1)))
		defer inPlay.Add(-1)
		return done(1), nil
	}}
	policy := policyFunc(func(_ context.Context, request Request) (Sample, error) { return sampled(member(request)), nil })
	spec := game(func(g *Spec) { g.GroupSize, g.MinMembers, g.Faulty = 4, 1, []int{2} })
	p := newPlayer(t, env, policy)
	var turns []int
	p.Turn = func(_ context.Context, member int) error {
		turns = append(turns, member)
		if got := p.Progress.MembersDone.Load(); got != int64(member) {
			t.Errorf("at the turn of member %d %d members are done", member, got)
		}
		return nil
	}
	group, err := p.Play(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(turns) != 3 || most.Load() != 1 {
		t.Errorf("the turns are %v with at most %d members in play, want 0, 1, 3 one at a time", turns, most.Load())
	}
	spec.Faulty = nil
	atOnce, err := newPlayer(t, env, policy).Play(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range group.Members {
		want := atOnce.Members[i]
		if i == 2 {
			want = rl.Member{Index: 2, Outcome: rl.EnvironmentFault}
		}
		if m.Outcome != want.Outcome || m.Index != want.Index || m.Reward != want.Reward ||
			m.SampledTokens != want.SampledTokens {
			t.Errorf("member %d is %+v, want %+v", i, m, want)
		}
	}
}

// TestTranscriptOfAFaultyMember checks that the transcript of a member that was not played, because workers died when
// they played it, says so.
func TestTranscriptOfAFaultyMember(t *testing.T) {
	spec := game(func(g *Spec) { g.GroupSize, g.MinMembers, g.Faulty, g.Transcript = 2, 1, []int{1}, true })
	p := newPlayer(t, &scripted{step: func(int, []environment.Reply) (environment.Turn, error) { return done(1), nil }},
		says("a"))
	p.Turn = func(context.Context, int) error { return nil }
	group, err := p.Play(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(group.Members[1].Transcript); !strings.Contains(got, "workers died while this member alone") {
		t.Errorf("the transcript is %q, want the reason", got)
	}
}

// TestReasonOfAGroupIsAFault checks that the reason of a group names the member that is a fault, and not an earlier
// member that a limit has ended: a run shows the reason as the newest fault of its environment.
func TestReasonOfAGroupIsAFault(t *testing.T) {
	members := []rl.Member{{Index: 0}, {Index: 1, Outcome: rl.Deadline}, {Index: 2, Outcome: rl.EnvironmentFault},
		{Index: 3, Outcome: rl.JudgeFault}}
	reasons := []string{"", "too slow", faultyReason, "no judgement"}
	for _, floor := range []int{1, 2} {
		spec := game(func(g *Spec) { g.MinMembers = floor })
		group := conclude(spec, members, reasons)
		if !strings.Contains(group.Reason, "member 2: workers died") || strings.Contains(group.Reason, "too slow") {
			t.Errorf("with %d needed members the reason is %q, want the first fault", floor, group.Reason)
		}
	}
	if group := conclude(game(func(g *Spec) { g.MinMembers = 1 }), members[:2], reasons); !strings.Contains(group.Reason,
		"member 1: too slow") {
		t.Errorf("without a fault the reason is %q, want the first member that is left out", group.Reason)
	}
}
