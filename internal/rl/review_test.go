// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestReviewStdOfNoise(t *testing.T) {
	t.Skip("finding not repaired yet: learner B9")
	x, y, z := 0.1, 0.2, 0.3
	g := Group{Outcome: Usable, Members: []Member{{Reward: x + y + z}, {Index: 1, Reward: z + y + x}, {Index: 2, Reward: x + y + z}, {Index: 3, Reward: z + y + x}}}
	t.Log("rewards", g.Members[0].Reward, g.Members[1].Reward, "GroupStd:", Advantages([]Group{g}, contract.Advantage{Baseline: contract.BaselineGroupMean, Scale: contract.ScaleGroupStd}))
	h := Group{Outcome: Usable, Members: []Member{{Reward: 1}, {Index: 1, Reward: 0}, {Index: 2, Reward: 0}}}
	t.Log("GroupMean/GroupStd  ", Advantages([]Group{h}, contract.Advantage{Baseline: contract.BaselineGroupMean, Scale: contract.ScaleGroupStd}))
	t.Log("LeaveOneOut/GroupStd", Advantages([]Group{h}, contract.Advantage{Baseline: contract.BaselineLeaveOneOut, Scale: contract.ScaleGroupStd}))
	one := Group{Outcome: Usable, Members: []Member{{Reward: 1}}}
	t.Log("one member", Advantages([]Group{one}, contract.Advantage{Baseline: contract.BaselineGroupMean, Scale: contract.ScaleGroupStd}), Advantages([]Group{one}, contract.Advantage{Baseline: contract.BaselineNone, Scale: contract.ScaleGroupStd}))
}
