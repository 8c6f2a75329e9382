// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// position is the loop state: all that a resume needs, and all that a checkpoint's name says.
type position struct {
	step, cursor    int64
	lineage, parent rl.Lineage
}

// shortLineage is how many hex digits of a lineage a checkpoint's name carries.
const shortLineage = 10

// positionOf reads the loop state out of a name.
func positionOf(name rl.CheckpointName) (position, error) {
	lineage, err := rl.LineageFromShort(name.Lineage)
	if err != nil {
		return position{}, err
	}
	parent, err := rl.LineageFromShort(name.Parent)
	if err != nil {
		return position{}, err
	}
	return position{step: name.Step, cursor: name.Cursor, lineage: lineage, parent: parent}, nil
}

// name spells the loop state for a model of this attempt.
func (l *learner) name(p position, model int) rl.CheckpointName {
	return rl.CheckpointName{
		Run: rl.RunTag(l.file.Run.UID), Step: p.step, Cursor: p.cursor,
		Attempt: l.file.Attempt, Model: model,
		Lineage: p.lineage.Short(), Parent: p.parent.Short(),
	}
}

func (p position) version() checkpoints.Version {
	return checkpoints.Version{Step: p.step, Lineage: p.lineage.Short()}
}
