// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// masking plays three turns and masks the replies of some of them.
func masking(masked ...int) *scripted {
	env := multiTurn(3, keep)
	step := env.step
	env.step = func(turn int, replies []environment.Reply) (environment.Turn, error) {
		out, err := step(turn, replies)
		if slices.Contains(masked, turn) {
			out.Masked = []string{""}
		}
		return out, err
	}
	return env
}

func TestMaskedRepliesAreContextAlone(t *testing.T) {
	plain := play(t, masking(), says("yes"), singleMember(nil)).Members[0].Trajectories[0].Segments[0]
	got := play(t, masking(1), says("yes"), singleMember(nil)).Members[0].Trajectories[0].Segments
	want := plain
	want.Actions, want.Logprobs = slices.Clone(plain.Actions), slices.Clone(plain.Logprobs)
	// Prompts have 19, 45 and 71 tokens, replies 4.
	clear(want.Actions[45:49])
	clear(want.Logprobs[45:49])
	if diff := cmp.Diff([]rl.Segment{want}, got); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
}

func TestAMemberWhoseRepliesAreAllMaskedTrainsNothing(t *testing.T) {
	m := play(t, masking(0, 1, 2), says("yes"), singleMember(nil)).Members[0]
	if len(segmentsOf(m)) != 0 || m.Outcome != rl.Usable || m.Reward != 3 {
		t.Errorf("member is %+v, want a reward of 3 and no segments", m)
	}
}

func TestMaskWithoutAReplyIsAFault(t *testing.T) {
	env := multiTurn(1, keep)
	step := env.step
	env.step = func(turn int, replies []environment.Reply) (environment.Turn, error) {
		out, err := step(turn, replies)
		out.Masked = []string{"judge"}
		return out, err
	}
	if m := play(t, env, says("yes"), singleMember(nil)).Members[0]; m.Outcome != rl.EnvironmentFault {
		t.Errorf("outcome %v, want a fault of the environment", m.Outcome)
	}
}
