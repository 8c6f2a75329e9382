// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import "github.com/tinker-operator/tinker-operator/test/model/protocol"

// firstVersion shows one shortest trace for each invariant that the first version broke.
func firstVersion() []Scenario {
	first := func(name, note string, changes ...change) Scenario {
		return scenario("first-version/"+name, note, asFirstWritten(), changes...)
	}
	second := func(c *protocol.Config) { c.SecondLearners = 1 }
	fail := func(c *protocol.Config) { c.Failures = 1 }
	fault := func(c *protocol.Config) { c.EnvironmentFaults, c.WorkerCrashes = 1, 1 }
	small := func(c *protocol.Config) { c.Attempts, c.Workers = 2, 1 }
	return []Scenario{
		first("corrupt", "save pipelined behind a failed chunk", fail, only(protocol.CorruptLoaded)),
		first("row", "crash between state save and row", only(protocol.RowMissing)),
		first("late-save", "in-flight save of a dead attempt, fault of the environment", fault, only(protocol.Regressed)),
		first("superseded-used", "", second, only(protocol.SupersededUsed)),
		first("superseded-covers", "", second, only(protocol.CoveredBoughtAgain)),
		first("superseded-deletes", "", second, only(protocol.NeededDeleted)),
		first("tie", "same attempt saves a step twice", fail, only(protocol.Tie)),
		first("session-key", "sampling session keyed by version", fault, only(protocol.WrongFinalWeights)),
		first("foreign", "another run's checkpoint in the listing",
			func(c *protocol.Config) { c.Foreign, c.Attempts = true, 1 }, only(protocol.ForeignLoaded)),
		first("expiry", "the newest state expires", func(c *protocol.Config) { c.Expiries = 1 },
			only(protocol.NeededDeleted)),
		first("lag-sampler", "lag 1, sampler of k-1 expires", lag1, small,
			func(c *protocol.Config) { c.SamplerExpiries = 1 }, only()),
		first("lag-parent", "lag 1, lineage of k-1 unknown after a resume", lag1, small,
			func(c *protocol.Config) { c.KnowParents = false }, only()),
		first("lag-refill", "lag 1, a filtered slot moves its successor to another step", lag1,
			func(c *protocol.Config) { c.Tombstones, c.Slots, c.Attempts = 2, 5, 1 },
			only(protocol.NotReproducible, protocol.BrokenChain)),
		first("deterministic", "crashes alone never change the final lineage",
			func(c *protocol.Config) { c.WorkerCrashes = 1 },
			only(protocol.NotReproducible, protocol.BrokenChain, protocol.WrongFinalWeights)),
	}
}

// protocolAsItIs explores the protocol under every fault.
func protocolAsItIs() []Scenario {
	all := underEachFault("protocol/lag0/")
	all = append(all, underEachFault("protocol/lag1/", lag1AfterFault)...)
	all = append(all, underEachFault("protocol/train-ahead/lag0/", trainAhead, func(c *protocol.Config) {
		c.Steps, c.Slots,
			c.Attempts = 3, 4, 2
	})...)
	all = append(all, underEachFault("protocol/train-ahead/lag1/", trainAhead, lag1AfterFault)...)
	all = append(all, underEachFault("protocol/per-step/lag1/", perStep, trainAhead, lag1AfterFault)...)
	all = append(all, underEachFault("protocol/per-step/lag1 tombstone/", perStep, trainAhead, lag1AfterFault,
		tombstoneOfStep1)...)
	all = append(all, underEachFault("protocol/per-step/lag2/", perStep, trainAhead, lag2AfterFault)...)
	all = append(all, underEachFault("protocol/group2/",
		func(c *protocol.Config) { c.BatchSize, c.Slots, c.Attempts = 2, 5, 2 })...)
	return append(all, underEachFault("protocol/evaluation/",
		func(c *protocol.Config) { c.Evaluate, c.Workers, c.SamplerExpiries = 1, 1, 1 })...)
}

func lag1AfterFault(c *protocol.Config) {
	lag1(c)
	oneWorker(c)
	giveSlots(c)
}

// lag2AfterFault has a fourth step: the first step that is sampled with a version other than 0.
func lag2AfterFault(c *protocol.Config) {
	c.Steps, c.Lag, c.Slots = 4, 2, 5
	oneWorker(c)
	twoAttempts(c)
	giveSlots(c)
}

// perStep reserves a range of slots for each step, refills included.
func perStep(c *protocol.Config) { c.Refill = protocol.RefillPerStep }

// giveSlots sets two slots for each step if steps have ranges of their own.
func giveSlots(c *protocol.Config) {
	if c.Refill == protocol.RefillPerStep {
		c.Slots = 2 * c.Steps
	}
}

// tombstoneOfStep1 makes a tombstone of the first slot of step 1, where steps have two slots.
func tombstoneOfStep1(c *protocol.Config) { c.Tombstones = 1 << 2 }

// minusOneClause takes one clause away at a time.
func minusOneClause() []Scenario {
	fail := func(c *protocol.Config) { c.Failures = 1 }
	return append([]Scenario{
		changed("minus/save-clean", "save pipelined behind optim_step, row after", fail, func(c *protocol.Config) {
			c.Save, c.Row, c.AnnounceEarly = protocol.SavePiped, protocol.RowAfter, false
		}, only(protocol.CorruptLoaded)),
		changed("minus/row-ahead", "row after the save",
			func(c *protocol.Config) { c.Row, c.AnnounceEarly = protocol.RowAfter, false }, only(protocol.RowMissing)),
		changed("minus/sampler-clean", "sampler save pipelined, found again by lineage", fail, twoAttempts,
			func(c *protocol.Config) { c.SamplerPiped = true }, only(protocol.CorruptLoaded, protocol.WrongFinalWeights)),
		changed("minus/drain-clean", "a learner that drains saves a state again although its model holds the next step",
			trainAhead, drainAfterFailure, func(c *protocol.Config) { c.SaveAhead = true }, only(protocol.CorruptLoaded)),
		changed("with/drain-clean", "", trainAhead, drainAfterFailure),
		changed("minus/claim", "no claims; opening state and order by attempt stay", noClaims, oneWorker,
			func(c *protocol.Config) { c.SecondLearners = 1 }),
		changed("minus/opening", "claims, order by attempt, no opening state", fail, oneWorker, func(c *protocol.Config) {
			c.SaveOpening, c.SaveInitial, c.SecondLearners = false, true, 2
		}, only(protocol.SupersededUsed)),
		changed("minus/claim-and-opening", "order by attempt alone", noClaims, oneWorker,
			func(c *protocol.Config) { c.SaveOpening, c.SecondLearners = false, 1 }, only(protocol.SupersededUsed)),
		changed("minus/order", "no claims, no opening state, order as the name sorts, fault of the environment",
			withoutClaimAndOpening, func(c *protocol.Config) { c.Order = protocol.OrderName }, only(protocol.Regressed)),
		changed("minus/order by-attempt", "the same, order by attempt", withoutClaimAndOpening, only(protocol.Regressed)),
	}, minusKept()...)
}

// drainAfterFailure has one failure and one suspension in a run of three steps.
func drainAfterFailure(c *protocol.Config) {
	c.Steps, c.Slots, c.Workers, c.Attempts, c.Failures, c.Suspensions = 3, 4, 1, 2, 1, 1
}

func withoutClaimAndOpening(c *protocol.Config) {
	c.SaveOpening, c.Fence, c.EnvironmentFaults, c.WorkerCrashes, c.Workers = false, protocol.FenceNone, 1, 1, 1
}

// minusKept takes away the kept states and the knowledge of earlier versions and other runs.
func minusKept() []Scenario {
	newestOnly := func(c *protocol.Config) { c.Retention, c.Spare = protocol.RetainNewest, 0 }
	guess := func(c *protocol.Config) { c.KnowParents = false }
	initFrom := func(c *protocol.Config) { c.InitFrom, c.Expiries = true, 1 }
	evaluation := func(c *protocol.Config) {
		c.Evaluate, c.SamplerExpiries, c.Workers, c.Attempts, c.Spare = 1, 1, 1, 2, 0
	}
	foreign := func(c *protocol.Config) { c.Foreign = true; c.Attempts = 1 }
	all := []Scenario{
		changed("minus/window", "only the newest state is kept, lag 1", lag1, newestOnly, oneWorker,
			func(c *protocol.Config) { c.SamplerExpiries = 1 }),
		changed("with/samplers-only", "only the newest state is kept, lag 1, samplers never expire", lag1, newestOnly,
			oneWorker,
			twoAttempts, func(c *protocol.Config) { c.SecondLearners, c.WorkerCrashes = 1, 1 }),
		changed("minus/parents", "lineages of the window guessed, lag 1, newest state only", lag1, guess, newestOnly,
			oneWorker),
		changed("minus/parents-kept", "lineages of the window guessed, lag 1, window kept, two s1 of different lineage",
			lag1, guess, noClaims, oneWorker, func(c *protocol.Config) { c.EnvironmentFaults, c.WorkerCrashes = 1, 1 }),
		changed("minus/s0", "initFrom vanishes before the first state", initFrom, twoAttempts,
			func(c *protocol.Config) { c.SaveOpening = false }, only()),
		changed("with/s0", "the same with step 0 saved first", initFrom, twoAttempts, only()),
		changed("minus/run-filter", "", foreign, func(c *protocol.Config) { c.RunFilter = false },
			only(protocol.ForeignLoaded)),
		changed("with/run-filter", "", foreign),
		changed("minus/eval-keep", "retention deletes a state whose evaluation has no row", evaluation,
			func(c *protocol.Config) { c.KeepForEvaluation = false }),
		changed("with/eval-keep", "", evaluation),
	}
	for _, name := range []string{"minus/session-key", "with/session-key"} {
		byVersion := name == "minus/session-key"
		all = append(all, changed(name, "sampling session keyed by version alone; no claims, no opening state", noClaims,
			func(c *protocol.Config) {
				c.SessionByVersion, c.SaveOpening, c.AnnounceEarly, c.Failures, c.EnvironmentFaults = byVersion, false, false, 1, 1
			}, only(protocol.CorruptLoaded, protocol.WrongFinalWeights)))
	}
	return all
}

// twoFaults explores two kinds of faults at once.
func twoFaults() []Scenario {
	both := func(name string, changes ...change) Scenario {
		return changed("protocol/both/"+name, "", append([]change{oneWorker}, changes...)...)
	}
	lagged := func(name string, change change) Scenario { return both(name, lag1, change) }
	return []Scenario{
		both("second-learner2+fail", func(c *protocol.Config) { c.SecondLearners, c.Failures = 2, 1 }),
		both("second-learner+environment-fault", func(c *protocol.Config) { c.SecondLearners, c.EnvironmentFaults = 1, 1 }),
		both("second-learner+restart", func(c *protocol.Config) { c.SecondLearners, c.Restarts = 1, 1 }),
		both("second-learner+worker", func(c *protocol.Config) { c.SecondLearners, c.WorkerCrashes = 1, 1 }),
		both("fail+environment-fault", func(c *protocol.Config) {
			c.Failures, c.EnvironmentFaults, c.WorkerCrashes = 1, 1,
				1
		}),
		both("suspend+environment-fault", func(c *protocol.Config) { c.Suspensions, c.EnvironmentFaults = 2, 1 }),
		lagged("lag1 second-learner+sampler", func(c *protocol.Config) { c.SecondLearners, c.SamplerExpiries = 1, 1 }),
		lagged("lag1 fail+sampler", func(c *protocol.Config) { c.Failures, c.SamplerExpiries, c.WorkerCrashes = 1, 1, 1 }),
		lagged("lag1 tombstone", func(c *protocol.Config) {
			c.Tombstones, c.Slots, c.WorkerCrashes, c.SamplerExpiries = 2, 5, 1, 1
		}),
	}
}

// big has the scenarios that take minutes.
func big() []Scenario {
	all := bigWithoutLag()
	lagged := func(name string, changes ...change) {
		all = append(all, changed("protocol/big/"+name, "", append([]change{lag1}, changes...)...))
	}
	lagged("lag1 second-learner2", oneWorker, func(c *protocol.Config) { c.SecondLearners = 2 })
	lagged("lag1 second-learner W2", func(c *protocol.Config) { c.SecondLearners = 1 })
	lagged("lag1 second-learner+fail", oneWorker, func(c *protocol.Config) { c.SecondLearners, c.Failures = 1, 1 })
	lagged("lag1 group2", twoAttempts, func(c *protocol.Config) { c.BatchSize, c.Slots, c.WorkerCrashes = 2, 7, 1 })
	lagged("lag1 group2 tombstone", twoAttempts, func(c *protocol.Config) {
		c.BatchSize, c.Slots, c.Tombstones, c.SamplerExpiries = 2, 8, 4, 1
	})
	lagged("lag1 second-learner+fail+sampler", oneWorker, twoAttempts, func(c *protocol.Config) {
		c.SecondLearners, c.Failures, c.SamplerExpiries = 1, 1, 1
	})
	all = append(all,
		changed("protocol/big/lag2", "", oneWorker, func(c *protocol.Config) {
			c.Steps, c.Lag, c.Slots, c.SecondLearners, c.SamplerExpiries = 3, 2, 4, 1, 1
		}),
		changed("protocol/big/group2 second-learner", "", oneWorker, func(c *protocol.Config) {
			c.BatchSize, c.Slots, c.SecondLearners = 2, 5, 1
		}),
		changed("no-store/big/second-learner+fail+environment-fault", "", noClaims, oneWorker, twoAttempts,
			func(c *protocol.Config) { c.SecondLearners, c.Failures, c.EnvironmentFaults = 1, 1, 1 }, allButCovered()))
	for i := range all {
		all[i].Big = true
	}
	return all
}

func bigWithoutLag() []Scenario {
	return []Scenario{
		changed("protocol/big/second-learner2", "", func(c *protocol.Config) { c.SecondLearners = 2 }),
		changed("protocol/big/three steps", "", oneWorker, func(c *protocol.Config) {
			c.Steps, c.Slots, c.SecondLearners, c.Failures = 3, 4, 1, 1
		}),
		changed("protocol/big/second-learner+fail+environment-fault+worker", "", oneWorker, twoAttempts,
			func(c *protocol.Config) {
				c.SecondLearners, c.Failures, c.EnvironmentFaults, c.WorkerCrashes = 1, 1, 1, 1
			}),
		changed("protocol/big/second-learner+fail+restart+sampler", "", oneWorker, twoAttempts, func(c *protocol.Config) {
			c.SecondLearners, c.Failures, c.Restarts, c.SamplerExpiries = 1, 1, 1, 1
		}),
	}
}
