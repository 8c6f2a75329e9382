// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Position is the state of the training loop: all that a resume needs, and all that a checkpoint's name carries.
type Position struct {
	Step, Cursor    int64
	Lineage, Parent rl.Lineage
}

// shortLineage is the number of hex digits of a lineage that a checkpoint's name carries.
const shortLineage = 10

// PositionOf reads the position out of a name.
func PositionOf(name rl.CheckpointName) (Position, error) {
	lineage, err := rl.LineageFromShort(name.Lineage)
	if err != nil {
		return Position{}, fmt.Errorf("reading lineage of %s: %w", name, err)
	}
	parent, err := rl.LineageFromShort(name.Parent)
	if err != nil {
		return Position{}, fmt.Errorf("reading parent of %s: %w", name, err)
	}
	return Position{Step: name.Step, Cursor: name.Cursor, Lineage: lineage, Parent: parent}, nil
}

// Version returns the version at the position.
func (p Position) Version() Version {
	return Version{Step: p.Step, Lineage: p.Lineage.Short()}
}

// Name returns the name under which a model of an attempt saves the position.
func (p Position) Name(runUID string, attempt int32, model int) rl.CheckpointName {
	return rl.CheckpointName{
		Run: rl.RunTag(runUID), Step: p.Step, Cursor: p.Cursor, Attempt: attempt, Model: model,
		Lineage: p.Lineage.Short(), Parent: p.Parent.Short(),
	}
}
