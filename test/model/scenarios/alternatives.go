// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/protocol"
)

// refill explores a lag with a tombstone at slot 0, 1 or 2.
func refill() []Scenario {
	var all []Scenario
	for slot := range 3 {
		for rule, name := range []string{"any", "discard", "certain", "per-step"} {
			all = append(all, changed(fmt.Sprintf("refill/%s/tombstone%d", name, slot), "", lag1, func(c *protocol.Config) {
				c.Tombstones, c.Refill, c.Attempts, c.Slots, c.CountCost = 1<<slot, protocol.Refill(rule), 1, 5, true
				if c.Refill == protocol.RefillPerStep {
					c.Slots = 6
				}
			}, only(protocol.NotReproducible, protocol.BrokenChain, protocol.Discarded, protocol.WrongFinalWeights)))
		}
	}
	return all
}

// alternatives explores another rule: the save pipelined, the row after it, and a state counts only with its row.
func alternatives() []Scenario {
	var all []Scenario
	rule := func(c *protocol.Config) {
		c.Save, c.Row, c.AnnounceEarly, c.CheckLast = protocol.SavePiped, protocol.RowAfter, false, true
	}
	for _, of := range []struct {
		name string
		need protocol.NeedRule
	}{{"by-lineage", protocol.NeedRowOfLineage}, {"by-checkpoint", protocol.NeedRowOfCheckpoint}} {
		add := func(name, note string, changes ...change) {
			need := func(c *protocol.Config) { c.Need = of.need }
			all = append(all, changed("alternative/"+of.name+"/"+name, note, append([]change{rule, need}, changes...)...))
		}
		fail := func(c *protocol.Config) { c.Failures, c.Workers = 1, 1 }
		second := func(c *protocol.Config) { c.SecondLearners = 1 }
		add("crash", "")
		add("fail", "", fail)
		add("fail+expiry", "", fail, func(c *protocol.Config) { c.Expiries = 1 }, only(protocol.CorruptLoaded))
		add("second-learner", "", second)
		add("second-learner check-first", "", second, func(c *protocol.Config) { c.CheckLast = false })
		add("second-learner base-record", "", second, recordBase)
		add("name-order", "names without a model", fail, func(c *protocol.Config) { c.Order = protocol.OrderName })
	}
	return all
}

// recordBase is another way to rank: the base is recorded with the claim, order is by step, no opening state is saved.
func recordBase(c *protocol.Config) {
	c.SaveOpening, c.SaveInitial, c.RecordBase, c.Order = false, true, true, protocol.OrderStep
}

// baseRecord explores recordBase.
func baseRecord() []Scenario {
	two := func(c *protocol.Config) { c.SecondLearners, c.Failures = 2, 1 }
	return append(underEachFault("base-record/", recordBase, oneWorker),
		changed("base-record/second-learner2+fail", "", recordBase, oneWorker, two),
		changed("base-record/second-learner2+fail by attempt", "", recordBase, oneWorker, two,
			func(c *protocol.Config) { c.Order = protocol.OrderAttempt }, only(protocol.SupersededUsed)))
}

// byRecord lists the checkpoints of the models that are recorded in the artifact store.
func byRecord(c *protocol.Config) { c.ByRecord = true }

// recordOfModels explores byRecord, and a record that is read before the claim is written.
func recordOfModels() []Scenario {
	second := func(c *protocol.Config) { c.SecondLearners = 1 }
	readFirst := func(c *protocol.Config) { c.ReadFirst = true }
	all := append(underEachFault("by-record/", byRecord, oneWorker),
		underEachFault("by-record/train-ahead/", byRecord, trainAhead, oneWorker, twoAttempts)...)
	return append(all,
		changed("by-record/second-learner2+fail", "", byRecord, oneWorker,
			func(c *protocol.Config) { c.SecondLearners, c.Failures = 2, 1 }),
		changed("by-record/second-learner+restart", "", byRecord, oneWorker, twoAttempts,
			func(c *protocol.Config) { c.SecondLearners, c.Restarts = 1, 1 }),
		changed("by-record/minus look", "a learner does not look for a higher claim when it has opened", byRecord, oneWorker,
			second, func(c *protocol.Config) { c.OpenBlind = true }),
		changed("by-record/lag1 second-learner+sampler", "", byRecord, lag1, oneWorker,
			func(c *protocol.Config) { c.SecondLearners, c.SamplerExpiries = 1, 1 }),
		changed("by-record/minus claim first", "the record is read before the claim is written", byRecord, oneWorker,
			twoAttempts, second, readFirst))
}

// allButCovered checks all invariants except the one about groups that a superseded learner makes workers drop.
func allButCovered() change {
	return only(protocol.CorruptLoaded, protocol.WrongFinalWeights, protocol.NotReproducible, protocol.RowMissing,
		protocol.SupersededUsed, protocol.NeededDeleted, protocol.Regressed, protocol.ForeignLoaded, protocol.Tie,
		protocol.BrokenChain)
}

// noStore explores runs without a durable artifact store.
func noStore() []Scenario {
	second := func(c *protocol.Config) {
		c.SecondLearners, c.SamplerExpiries, c.Workers, c.Attempts, c.Spare = 1, 1, 1, 2, 0
	}
	return append(underEachFault("no-store/", noClaims, oneWorker),
		changed("no-store/second-learner rest", "all but what a superseded learner makes workers drop", noClaims, oneWorker,
			func(c *protocol.Config) { c.SecondLearners = 1 }, allButCovered()),
		changed("no-store/lag1 second-learner sampler-expiry", "", lag1, noClaims, second, only()),
		changed("claims/lag1 second-learner sampler-expiry", "", lag1, second, only()),
		changed("no-store/lag1 second-learner sampler-expiry fallback", "", lag1, noClaims, second,
			func(c *protocol.Config) { c.Fallback = true }, only()),
		changed("no-store/lag1 second-learner sampler-expiry reopen", "", lag1, noClaims, second,
			func(c *protocol.Config) { c.Reopen = true }, only()))
}

// unload explores a fence by unloading the models of lower attempts.
func unload() []Scenario {
	return underEachFault("unload/", func(c *protocol.Config) { c.Fence = protocol.FenceUnload }, oneWorker)
}

// expiry explores a newest state that cannot be loaded.
func expiry() []Scenario {
	base := func(c *protocol.Config) { c.Expiries, c.Steps, c.Workers = 1, 3, 1 }
	trails := func(c *protocol.Config) { c.CoverTrails = true }
	return []Scenario{
		changed("expiry/spare0", "", base, func(c *protocol.Config) { c.Spare = 0 }, only(protocol.NeededDeleted)),
		changed("expiry/spare1", "", base, only(protocol.NeededDeleted, protocol.NotReproducible, protocol.WrongFinalWeights,
			protocol.BrokenChain, protocol.RowMissing)),
		changed("expiry/spare1 rebuys", "", base, only(protocol.CoveredBoughtAgain)),
		changed("expiry/spare1 cover-trails", "", base, trails, only(protocol.CoveredBoughtAgain, protocol.NeededDeleted,
			protocol.NotReproducible, protocol.WrongFinalWeights, protocol.BrokenChain, protocol.RowMissing)),
	}
}

// managerRecord explores runs that resume from the manager's record.
func managerRecord() []Scenario {
	base := func(c *protocol.Config) { c.ByManager, c.Workers, c.SaveOpening = true, 1, false }
	return []Scenario{
		changed("manager-record/covered", "covered as soon as saved", base),
		changed("manager-record/acknowledged", "covered when the manager has it", base, noClaims,
			func(c *protocol.Config) { c.Acknowledged = true },
			only(protocol.CoveredBoughtAgain, protocol.Regressed, protocol.NotReproducible, protocol.RowMissing)),
	}
}

// capacity explores how much a worker can store.
func capacity() []Scenario {
	makeRoom := func(c *protocol.Config) { c.MakeRoom = true }
	one := func(c *protocol.Config) { c.BatchSize, c.Slots, c.Capacity, c.Workers, c.Attempts = 2, 5, 1, 1, 2 }
	guess := func(c *protocol.Config) {
		c.Capacity, c.Workers, c.Attempts, c.Refill = 1, 1, 1, protocol.RefillDiscard
	}
	all := []Scenario{
		changed("capacity/1 of 2", "two slots a step, one worker that stores one", one, only()),
		changed("capacity/1 of 2 make-room", "", one, makeRoom, only()),
		changed("capacity/guess lag1", "slots leased ahead on a guess, one group is stored", lag1, guess, only()),
	}
	for n := 1; n <= 3; n++ {
		full := func(c *protocol.Config) { c.Capacity, c.Attempts, c.EnvironmentFaults, c.WorkerCrashes = n, 2, 1, 1 }
		name := fmt.Sprintf("capacity/stale capacity%d", n)
		all = append(all, changed(name, "groups of an abandoned lineage fill the worker", full, only()),
			changed(name+" make-room", "", full, makeRoom, only()))
	}
	return append(all,
		changed("capacity/guess lag1 make-room", "", lag1, guess, makeRoom, only()),
		changed("capacity/window", "the window can be stored", lag1, func(c *protocol.Config) {
			c.BatchSize, c.Slots, c.Capacity, c.Workers, c.Attempts, c.Steps = 2, 8, 4, 1, 1, 3
		}))
}

// cost explores samples that are bought twice, discarded, or bought for a superseded learner: the most over all
// schedules.
func cost() []Scenario {
	var all []Scenario
	for _, size := range []struct {
		name   string
		change change
	}{
		{"lag0 G1", func(*protocol.Config) {}},
		{"lag0 G2", func(c *protocol.Config) { c.BatchSize, c.Slots = 2, 5 }},
		{"lag1 G1", lag1},
		{"lag0 three steps", func(c *protocol.Config) { c.Steps, c.Slots = 3, 4 }},
		{"lag1 four steps", func(c *protocol.Config) { c.Steps, c.Lag, c.Slots = 4, 1, 5 }},
	} {
		count := func(c *protocol.Config) { c.CountCost = true }
		add := func(name, note string, changes ...change) {
			all = append(all, changed("cost/"+size.name+"/"+name, note, append([]change{size.change, count, only()},
				changes...)...))
		}
		hello := func(c *protocol.Config) { c.WaitHello = true }
		fault := func(c *protocol.Config) { c.EnvironmentFaults, c.WorkerCrashes = 1, 1 }
		add("learner", "one learner crash, leases before every Hello", twoAttempts)
		add("learner hello", "one learner crash, no lease before every Hello", twoAttempts, hello)
		add("worker", "one worker crash, no learner crash", hello,
			func(c *protocol.Config) { c.WorkerCrashes, c.Attempts = 1, 1 })
		add("both", "a learner crash and two worker crashes", twoAttempts, hello,
			func(c *protocol.Config) { c.WorkerCrashes = 2 })
		add("suspend", "suspend once", twoAttempts, hello, func(c *protocol.Config) { c.Suspensions = 1 })
		add("second-learner", "attempt 2 beside attempt 1", twoAttempts, func(c *protocol.Config) { c.SecondLearners = 1 })
		add("environment-fault", "fault of the environment, learner crash, worker crash", twoAttempts, hello, fault)
		add("environment-fault prefer-row", "the same, tombstones taken from the row", twoAttempts, hello, fault,
			func(c *protocol.Config) { c.PreferRow = true })
		add("environment-fault late", "the same, announced after the state is saved", twoAttempts, hello, fault,
			func(c *protocol.Config) { c.AnnounceEarly = false })
	}
	return all
}
