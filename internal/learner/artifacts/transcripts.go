// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/page"
)

const (
	// maxWaiting bounds the transcripts that wait for their steps to be committed, and those that wait for the store, in
	// bytes. The oldest ones make room.
	maxWaiting = 64 << 20
	// maxStated is how many steps before a version are stated to have no transcript.
	maxStated = 256
)

// Transcripts writes transcripts of steps, which wait for their steps to be committed, and then for the store.
type Transcripts struct {
	journal                *Journal
	uncommitted, committed []transcript.Step
}

// Add adds the transcript of a step. It is written once the step is committed.
func (t *Transcripts) Add(step transcript.Step) {
	if t.journal.store == nil {
		return
	}
	t.uncommitted = append(t.uncommitted, step)
	withhold(t.uncommitted, "more steps were made before a state was saved than the learner has room for")
}

// withhold leaves out the groups of the oldest steps where there is no room for all, and states why.
func withhold(steps []transcript.Step, reason string) {
	room := maxWaiting
	for i := range slices.Backward(steps) {
		if room -= steps[i].Size(); room < 0 {
			steps[i].Withhold(reason)
		}
	}
}

// Write writes the transcripts of the steps that were made so far, which are committed now. What the store does
// not take is written with those of a later step; the last ones wait for the store.
func (t *Transcripts) Write(ctx context.Context, last bool) error {
	t.committed, t.uncommitted = append(t.committed, t.uncommitted...), nil
	for last && len(t.committed) > 0 {
		oldest := t.committed[0]
		if err := t.journal.insist(ctx, "writing transcripts",
			func() error { return write(t.journal.store, oldest) }); err != nil {
			return err
		}
		t.committed = t.committed[1:]
	}
	if err := t.writeCommitted(); err != nil {
		t.journal.config.Logger.Warn("transcripts are not written yet", "err", err)
		withhold(t.committed, "the artifact store did not take the transcript before there were too many of them")
	}
	return nil
}

func (t *Transcripts) writeCommitted() error {
	for ; len(t.committed) > 0; t.committed = t.committed[1:] {
		if err := write(t.journal.store, t.committed[0]); err != nil {
			return err
		}
	}
	return nil
}

func write(to *Store, step transcript.Step) error {
	encoded, err := json.Marshal(step)
	if err != nil {
		return fmt.Errorf("encoding transcript of step %d: %w", step.Step, err)
	}
	return to.WriteTranscript(step.Step, step.Lineage, encoded, page.Render(step))
}

// StateMissing states which of the newest steps of a version that was loaded have no transcript, as their learner
// ended between their commit and the transcript.
func (t *Transcripts) StateMissing(v rl.Version) {
	if t.journal.store == nil {
		return
	}
	found, err := t.journal.store.Transcripts()
	if err != nil {
		t.journal.config.Logger.Warn("transcripts are not listed", "err", err)
		return
	}
	for _, waiting := range t.committed {
		found[TranscriptKey(waiting.Step, waiting.Lineage)] = true
	}
	var missing []transcript.Step
	for version := range t.journal.Chain(v) {
		lineage := version.Lineage.String()
		if version.Step < 1 || len(missing) == maxStated || found[TranscriptKey(version.Step, lineage)] {
			break
		}
		missing = append(missing, transcript.Step{
			Step: version.Step, Lineage: lineage, SampledAt: version.Step - 1,
			Missing: "no transcript was written: the learner ended when the step was committed, or transcripts were off",
		})
	}
	t.committed = append(t.committed, missing...)
	if err := t.writeCommitted(); err != nil {
		t.journal.config.Logger.Warn("missing transcripts are not stated yet", "err", err)
	}
}
