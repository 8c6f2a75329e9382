// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// The order of these tables is the protocol: see the package comment.
var (
	// beginPhases are done once in an attempt.
	beginPhases = []phase[*beginning]{
		{name: "open.claimed", interruptible: true, do: (*beginning).claim},
		{name: "open.pinned", interruptible: true, do: (*beginning).pinTokenizer},
		{name: "open.probed", interruptible: true, do: (*beginning).check},
		{name: "open.read", interruptible: true, do: (*beginning).readRows},
		{name: "open.connected", interruptible: true, do: (*beginning).connect},
	}
	// openPhases open a model from the newest state, at the beginning and after a model was discarded.
	openPhases = []phase[*modelOpening]{
		{name: "open.listed", interruptible: true, do: (*modelOpening).list},
		{name: "open.loaded", interruptible: true, do: (*modelOpening).load},
		{name: "open.saved", do: (*modelOpening).save},
		{name: "open.looked", do: (*modelOpening).checkClaims},
		{name: "open.admitted", do: (*modelOpening).admitWorkers},
	}
	// trainPhases make the next version. The save of the version before may still be in flight.
	trainPhases = []phase[*trainingStep]{
		{name: "step.sampled", interruptible: true, do: (*trainingStep).collect},
		{name: "step.submitted", do: (*trainingStep).submit},
	}
	// announcePhases make workers sample the next version. The version before is committed by then.
	announcePhases = []phase[*trainingStep]{
		{name: "replies.clean", do: (*trainingStep).wait},
		{name: "sampler.announced", do: (*trainingStep).announce},
		{name: "step.measured", do: (*trainingStep).record},
	}
	// savePhases and commitPhases make the current version durable; the clean reply to the save is the commit.
	savePhases = []phase[*commit]{
		{name: "row.written", do: (*commit).writeRows},
		{name: "save.submitted", do: (*commit).submit},
	}
	commitPhases = []phase[*commit]{
		{name: "save.done-unanswered", do: (*commit).wait},
		{name: "save.answered", do: (*commit).add},
		{name: "claim.looked", do: (*commit).checkClaims},
		{name: "covered.sent", do: (*commit).cover},
		{name: "retire.before", do: (*commit).evaluate},
		{name: "retire.begun", do: (*commit).retire},
	}
)

// FaultPoints names the points at which Config.Fault is called, in the order in which a run passes them.
func FaultPoints() []string {
	return slices.Concat(
		pointsOf(beginPhases), pointsOf(openPhases), pointsOf(trainPhases), pointsOf(announcePhases), pointsOf(savePhases),
		pointsOf(commitPhases),
	)
}

func pointsOf[S sequence](phases []phase[S]) []string {
	list := make([]string, 0, len(phases))
	for _, p := range phases {
		list = append(list, p.name)
	}
	return list
}

// makeStep makes the next version, and begins to commit it if its state is to be saved.
func (l *learner) makeStep(ctx, soft context.Context) error {
	l.report(func(p *contract.Progress) { p.Phase = contract.PhaseTraining })
	commits := committer{l}
	s := &trainingStep{learner: l, next: l.loop.at.Step + 1}
	if err := commits.awaitBatch(ctx, soft); err != nil {
		return err
	}
	s.clock = trainee.NewStopwatch(l.config.Now)
	err := s.watched(soft, func(soft context.Context) error { return perform(ctx, soft, s, trainPhases, l.config.Fault) })
	if err = commits.completeAfter(ctx, err); err == nil {
		err = perform(ctx, soft, s, announcePhases, l.config.Fault)
	}
	code := failure.CodeOf(err)
	if code == problem.DataRefused || code == problem.SettingsRefused {
		l.loop.refused = new(s.step().Sample(code))
	}
	if code == problem.DataRefused {
		return l.loop.suspect.Record(s.batch, err)
	}
	if err != nil {
		return err
	}
	if !savesAt(l.file, l.loop.at.Step) {
		l.status.Succeed()
		if err := l.journal.WriteRows(ctx); err != nil {
			return err
		}
		l.tracks.uploads.Store()
		return nil
	}
	return commits.begin(ctx)
}
