// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The most attempts, workers, lag and slots of any configuration.
const (
	maxAttempts = 3
	maxWorkers  = 2
	maxLag      = 2
	maxSlots    = 8
	maxBatch    = 2
)

// SaveRule says when a state is saved.
type SaveRule uint8

// The rules for saving.
const (
	// SavePiped submits the save right after optim_step, before the replies are known.
	SavePiped SaveRule = iota
	// SaveClean submits the save once every reply of the step is clean.
	SaveClean
)

// RowRule says when the row of a step is written.
type RowRule uint8

// The rules for rows.
const (
	// RowAfter writes the row after the reply to the save.
	RowAfter RowRule = iota
	// RowAhead makes the row durable before the save is submitted.
	RowAhead
)

// NeedRule says which row a state needs to be resumed from.
type NeedRule uint8

// The rules for resuming.
const (
	NeedNothing NeedRule = iota
	// NeedRowOfLineage needs a row with the state's step and lineage.
	NeedRowOfLineage
	// NeedRowOfCheckpoint needs the row that was written for exactly this checkpoint (attempt and model).
	NeedRowOfCheckpoint
)

// Fence says how learners of earlier attempts are stopped.
type Fence uint8

// The fences.
const (
	FenceNone Fence = iota
	// FenceUnload creates the learner's own model, lists models, unloads the models of lower attempts, and lists states.
	FenceUnload
	// FenceClaim writes a claim, lists states, and looks for a higher claim after each save.
	FenceClaim
)

// Order says which of two checkpoints is newer.
type Order uint8

// The orders, which differ in the values that they compare.
const (
	// OrderName compares step, cursor and attempt, as the name sorts.
	OrderName Order = iota
	// OrderStep compares step, attempt and model.
	OrderStep
	// OrderAttempt compares attempt, model and step.
	OrderAttempt
)

// Refill says when a slot is leased, and which of its groups are accepted.
type Refill uint8

// The ways to refill a batch.
const (
	// RefillAny leases slots ahead on a guess, and accepts a group of any version of the window.
	RefillAny Refill = iota
	// RefillDiscard leases slots ahead on a guess, and discards a group of the wrong version.
	RefillDiscard
	// RefillCertain leases a slot only when the members of the batches before it are certain.
	RefillCertain
	// RefillPerStep reserves a range of slots for each step, refills included.
	RefillPerStep
)

// Retention says which states are deleted.
type Retention uint8

// The kinds of retention.
const (
	RetainAll Retention = iota
	// RetainNewest deletes all states that are older than the learner's newest state.
	RetainNewest
	// RetainWindow deletes all states that are older than the window of the lag and the spare states.
	RetainWindow
)

// Config is one configuration of the model.
type Config struct {
	// The size of the run.
	Steps, BatchSize, Lag, Workers, Slots, Attempts int
	// Capacity limits the groups that a worker can store; 0 means no limit.
	Capacity int
	// MakeRoom lets a full worker release its highest slot for a lower slot that is missing.
	MakeRoom bool

	// How many faults of each kind there are. SecondLearners are attempts that start while the previous one still runs.
	SecondLearners, WorkerCrashes, Failures, EnvironmentFaults int
	Expiries, SamplerExpiries, Suspensions, Restarts           int
	// Tombstones are the slots that are tombstones at any version, one bit each.
	Tombstones uint
	// InitFrom makes version 0 a foreign checkpoint, which may be deleted (this counts as one of Expiries).
	InitFrom bool
	// Foreign puts another run's checkpoint into the listing.
	Foreign bool

	Save      SaveRule
	Row       RowRule
	Need      NeedRule
	Fence     Fence
	Order     Order
	Refill    Refill
	Retention Retention

	// SaveOpening: an attempt first saves the loaded state under its own name.
	SaveOpening bool
	// RecordBase: with claims, an attempt records its base; of earlier attempts only this base and older states count.
	RecordBase bool
	// SaveInitial: a fresh run saves step 0 first.
	SaveInitial bool
	// SamplerPiped: sampler weights are saved right after optim_step.
	SamplerPiped bool
	// SessionByVersion: the sampling session is keyed by the version alone.
	SessionByVersion bool
	// ByManager: a learner resumes from the manager's record.
	ByManager bool
	// Acknowledged: covered_index waits for the manager's record.
	Acknowledged bool
	// WaitHello: nothing is leased before every live worker said Hello.
	WaitHello bool
	// KnowParents: the lineages of the window are known on resume.
	KnowParents bool
	// RunFilter: the listing is filtered by run.
	RunFilter bool
	// ByRecord: a learner records each model before it saves with it, and lists the checkpoints of the recorded models.
	ByRecord bool
	// ReadFirst: a learner reads the record before it writes its claim, instead of afterwards.
	ReadFirst bool
	// OpenBlind: a learner does not look for a higher claim once its opening state is saved.
	OpenBlind bool
	// Reopen: a learner that cannot make a lost version again lists checkpoints again.
	Reopen bool
	// Spare is the number of states that are kept beyond the window, for a newest state that cannot be loaded.
	Spare int
	// CoverTrails: covered_index trails by the spare states.
	CoverTrails bool
	// CheckLast: with RowAfter and claims, the row is written before the learner looks for a higher claim.
	CheckLast bool
	// PreferRow: a step that is done again takes the tombstones of the newest row written for it.
	PreferRow bool
	// Fallback: a version that is permanently lost is replaced by the next newer one.
	Fallback bool
	// AnnounceEarly: the new version is announced as soon as the replies are clean, before row and state.
	AnnounceEarly bool
	// TrainAhead: the next step may be submitted while the save of the state has no reply, once the version is announced.
	TrainAhead bool
	// SaveAhead: a learner that drains when the save of a state has failed saves it again, whatever its model holds by
	// then.
	SaveAhead bool
	// Evaluate is the version whose evaluation is due; 0 means that no evaluation is due.
	Evaluate int
	// KeepForEvaluation: retention spares a state whose evaluation has no row yet.
	KeepForEvaluation bool

	// CountCost tracks samples that are bought twice.
	CountCost bool
	// Only restricts the checked invariants; nil checks all of them.
	Only map[engine.Code]bool
}
