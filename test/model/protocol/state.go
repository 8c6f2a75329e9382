// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The phases of a learner.
const (
	absent uint8 = iota
	atStart
	atClaimed // Its claim (or its new model) is visible.
	atCleared // The models of lower attempts are unloaded, or the record of models is read.
	atChosen  // The base checkpoint is chosen and not loaded.
	atLoaded  // The base is loaded, and its model is not recorded.
	atOpening // Its opening state is being saved.
	atServe   // The loop gathers the groups of its step.
	atTrained // forward_backward and optim_step are submitted.
	atClean   // Their replies are clean.
	atSaving  // The save is submitted.
	atSaved   // The save is clean.
	atChecked // It saw no higher claim after the save.
	atReady   // The row is durable, or is written after the save.
	atPublished
	atDone
	dead
	fenced
)

var phaseNames = []string{"absent", "start", "claimed", "cleared", "chosen", "loaded", "opening", "serve", "trained",
	"clean", "saving", "saved", "checked", "ready", "published", "done", "dead", "fenced"}

func running(phase uint8) bool { return phase >= atStart && phase <= atPublished }
func serving(phase uint8) bool { return phase >= atServe && phase <= atPublished }

// The states of a save.
const (
	saveNone uint8 = iota
	saveQueued
	saveDone
	saveRefused
)

// The states of a model at the server.
const (
	modelNone uint8 = iota
	modelAlive
	modelUnloaded
)

// The replies of a step.
const (
	repliesClean uint8 = iota + 1
	repliesUnclean
)

// scratch is the recorded base of an attempt that began without a checkpoint; none and unknownLineage are not lineages.
const (
	scratch        = 255
	none           = 255
	unknownLineage = 254
	foreignLineage = 250
)

// Learner is the process of one attempt.
type Learner struct {
	Phase, Model, Step, Cursor uint8
	// Lineages are the lineages of the versions Step, Step-1, ...
	Lineages [maxLag + 1]uint8
	// Weights is the content of its model.
	Weights uint8
	// The result of the step in progress.
	NextCursor, NextLineage, NextWeights uint8
	// Ahead is the result of the step after that, submitted while the save of the step in progress has no reply.
	Ahead trained
	// Replies says whether the replies are clean. The learner knows this only once it has collected the replies.
	Replies uint8
	// Pending is the checkpoint that its model saves, and Abandoned a checkpoint that is queued on an abandoned model.
	Pending, Abandoned      uint8
	Save                    uint8
	ModelState              uint8
	Covered, Base, Rejected uint8
	// Listable is 1 plus the bits of the models in the record that it read; 0 means that it has not read the record.
	Listable uint16
	// LastCovered is the newest checkpoint up to which it covers groups: at first the checkpoint that it loaded.
	LastCovered uint8
	// Committed is 1 once it committed a step since it opened, and Announced once the next version is announced.
	Committed, Announced uint8
	// Groups are the accepted groups, by slot.
	Groups [maxSlots]uint8
}

// trained is the result of a step that is submitted; the zero value means that no step is submitted.
type trained struct{ Cursor, Lineage, Weights, Replies uint8 }

// Worker stores finished groups.
type Worker struct {
	Attempt uint8
	Stored  [maxSlots]uint8
}

type set [32]uint8

func (b *set) has(i uint8) bool { return b[i>>3]&(1<<(i&7)) != 0 }
func (b *set) add(i uint8)      { b[i>>3] |= 1 << (i & 7) }
func (b *set) remove(i uint8)   { b[i>>3] &^= 1 << (i & 7) }

// State is a state of the model.
type State struct {
	Learners [maxAttempts + 1]Learner // By attempt.
	Workers  [maxWorkers]Worker
	// The contents of the server and of the artifact store.
	Checkpoints, Samplers, Rows set
	// Sessions are the sampler weights to which the session of each step's version is bound.
	Sessions [8]uint8
	// Claims has a bit for each attempt with a visible claim or model, and Bases the recorded base of each.
	Claims uint8
	Bases  [maxAttempts + 1]uint8
	// Recorded has a bit for each model that is recorded.
	Recorded uint16
	// The manager's knowledge: the newest attempt, and the newest checkpoint that was reported.
	Attempt, Reported, Complete uint8
	// The faults that are left.
	SecondLearners, WorkerCrashes, Failures, EnvironmentFaults uint8
	Expiries, SamplerExpiries, Suspensions, Restarts           uint8
	// InitialMissing is 1 once the checkpoint of InitFrom is deleted.
	InitialMissing uint8
	// Opened is the highest attempt that has opened, and CoveredLineage the newest lineage that was covered.
	Opened, CoveredLineage                   uint8
	Broken                                   uint8
	BoughtTwice, Discarded, BoughtSuperseded uint8
	// Evaluated are the lineages whose evaluation has a row.
	Evaluated       set
	Dropped, Bought set
}

// higherClaim reports whether a higher attempt than n has claimed the run.
func (s *State) higherClaim(n int) bool { return s.Claims>>(uint8(n)+1) != 0 }

// sortWorkers sorts the workers. The workers are alike, so states that differ only in their order become one state.
func (s *State) sortWorkers() {
	a, b := &s.Workers[0], &s.Workers[1]
	swap := a.Attempt > b.Attempt
	if a.Attempt == b.Attempt {
		for i := range a.Stored {
			if a.Stored[i] != b.Stored[i] {
				swap = a.Stored[i] > b.Stored[i]
				break
			}
		}
	}
	if swap {
		*a, *b = *b, *a
	}
}

// The invariants, and the costs that are counted as if they were invariants.
const (
	CorruptLoaded engine.Code = iota + 1
	WrongFinalWeights
	NotReproducible
	RowMissing
	CoveredBoughtAgain
	SupersededUsed
	NeededDeleted
	Regressed
	ForeignLoaded
	Tie
	BoughtTwice
	BrokenChain
	Discarded
	_
	_
	BoughtForSuperseded
)

var codeNames = map[engine.Code]string{
	CorruptLoaded:       "I1 corrupt state resumed from",
	WrongFinalWeights:   "I1 final weights are not the lineage's",
	NotReproducible:     "I2 final lineage depends on the schedule",
	RowMissing:          "I3 a row of the final lineage is missing",
	CoveredBoughtAgain:  "I4 a group dropped as covered is needed again",
	SupersededUsed:      "I5 a superseded learner's save is resumed from",
	NeededDeleted:       "I5 a checkpoint is deleted that the next resume needs",
	Regressed:           "I5 a resume leaves the lineage that was covered",
	ForeignLoaded:       "I9 another run's checkpoint is resumed from",
	Tie:                 "I9 two different checkpoints tie for newest",
	BoughtTwice:         "cost: a group is bought twice",
	BrokenChain:         "I1 final lineage skips, repeats or mixes versions",
	Discarded:           "cost: a finished group is discarded",
	BoughtForSuperseded: "cost: a superseded learner has groups sampled",
}
