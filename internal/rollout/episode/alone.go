// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// faultyReason is the reason why a member is not played: only this member was in play when workers died.
const faultyReason = "workers died while this member alone was played: its reply, or what the environment makes of " +
	"it, ends the process"

// inTurn plays the members one after the other, each as soon as Turn permits it. Members that are known to end the
// process are not played and count as faults.
func (p *Player) inTurn(ctx context.Context, spec Spec, members []rl.Member, reasons []string) error {
	for i := range members {
		if slices.Contains(spec.Faulty, i) {
			unplayed := &episode{player: p, spec: &spec}
			members[i], reasons[i] = rl.Member{Index: i, Outcome: rl.EnvironmentFault,
				Transcript: unplayed.transcript(faultyReason)}, faultyReason
			p.Progress.MembersDone.Add(1)
			continue
		}
		if err := p.Turn(ctx, i); err != nil {
			return err
		}
		var err error
		if members[i], reasons[i], err = p.member(ctx, spec, i); err != nil {
			return err
		}
	}
	return nil
}
