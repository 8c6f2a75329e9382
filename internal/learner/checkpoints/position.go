// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import "github.com/tinker-operator/tinker-operator/internal/rl"

// Position is the state of the training loop: all that a resume needs, and all that a checkpoint's name carries.
type Position struct {
	rl.Version

	Cursor int64
	Parent rl.Lineage
}

// PositionOf reads the position out of a name.
func PositionOf(name rl.CheckpointName) Position {
	return Position{Version: name.Version(), Cursor: name.Cursor, Parent: name.Parent}
}

// Name returns the name under which a model of an attempt saves the position.
func (p Position) Name(runUID string, attempt int32, model int) rl.CheckpointName {
	return rl.CheckpointName{
		Run: rl.RunTag(runUID), Step: p.Step, Cursor: p.Cursor, Attempt: attempt, Model: model, Lineage: p.Lineage,
		Parent: p.Parent,
	}
}
