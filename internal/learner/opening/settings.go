// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// SettingsError says that a step was committed with other settings than this attempt has, so that the attempt can
// neither continue from that step nor begin anew.
type SettingsError struct {
	Step    int64
	Attempt int32
	// Changed are the fields that differ, by their paths below spec; empty if unknown.
	Changed []string
}

// Error names the changed fields and the repair.
func (e *SettingsError) Error() string {
	fields := "what decides the weights"
	if len(e.Changed) > 0 {
		fields = "spec." + strings.Join(e.Changed, ", spec.")
	}
	return fmt.Sprintf("Attempt %d committed step %d before a change of %s took effect: restore what it was then, or "+
		"create another run with the new settings",
		e.Attempt, e.Step, fields)
}

// ofOwnSettings returns the states, the newest first, that were saved with the settings of this attempt. The settings
// that decide the weights may change until a step is committed: if the newest state with other settings is of step 0,
// the run begins anew; if it is of a later step, ofOwnSettings returns a SettingsError.
func (o *Opener) ofOwnSettings(ctx context.Context, states []checkpoints.Entry) ([]checkpoints.Entry, error) {
	for len(states) > 0 && (o.hasOtherSettings(states[0]) || o.hasOtherOrigin(states[0])) {
		newest := states[0]
		if newest.Name.Step == 0 {
			return nil, nil
		}
		exists, err := o.Models.Exists(ctx, newest)
		if err != nil {
			return nil, err
		}
		if exists {
			former, _ := o.File.Former.Of(newest.Name.Attempt)
			return nil, &SettingsError{Step: newest.Name.Step, Attempt: newest.Name.Attempt, Changed: former.Changed}
		}
		states = states[1:] // Its row was written, and then the learner died.
	}
	return slices.DeleteFunc(slices.Clone(states), o.hasOtherSettings), nil
}

// hasOtherSettings reports whether the run file says that other settings decided the weights of a state.
func (o *Opener) hasOtherSettings(state checkpoints.Entry) bool {
	former, known := o.File.Former.Of(state.Name.Attempt)
	return known && !former.Equal(o.File.SpecDigest, o.File.ResumeFrom)
}

// hasOtherOrigin reports whether a state descends, as far as names record it, from the first version of other settings.
func (o *Opener) hasOtherOrigin(state checkpoints.Entry) bool {
	origin, known := o.Book.Origin(state)
	return known && origin != rl.Genesis(o.File.SpecDigest)
}
