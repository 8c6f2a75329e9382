// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

type addFn func(name, note string, c PCfg)

func more(P PCfg, add, big addFn) []Scenario {
	// One clause of the proposal taken away at a time.
	add("minus/save-clean", "save pipelined behind optim_step, row after", with(P, func(c *PCfg) { c.Save, c.Row, c.Early, c.Fail = savePiped, rowAfter, false, 1 }, only(cPoisonLoaded)))
	add("minus/row-ahead", "row after the save", with(P, func(c *PCfg) { c.Row = rowAfter; c.Early = false }, only(cRowMissing)))
	add("minus/sampler-clean", "sampler save pipelined, found again by lineage", with(P, func(c *PCfg) { c.PubPiped = true; c.Fail = 1; c.A = 2 }, only(cPoisonLoaded, cFinalWeights)))
	add("minus/claim", "no claims; opening state and order by attempt stay", with(P, func(c *PCfg) { c.Fence = fenceNone; c.Zomb = 1; c.W = 1 }))
	add("minus/opening", "claims, order by attempt, no opening state", with(P, func(c *PCfg) { c.Opening = false; c.S0 = true; c.Zomb = 2; c.Fail = 1; c.W = 1 }, only(cZombieUsed)))
	add("minus/claim-and-opening", "order by attempt alone", with(P, func(c *PCfg) { c.Opening, c.Fence, c.Zomb, c.W = false, fenceNone, 1, 1 }, only(cZombieUsed)))
	add("minus/order", "no claims, no opening state, order as the name sorts, flake", with(P, func(c *PCfg) {
		c.Opening, c.Fence, c.Order, c.Flake, c.WCr, c.W = false, fenceNone, orderName, 1, 1, 1
	}, only(cRegress)))
	add("minus/order by-attempt", "the same, order by attempt", with(P, func(c *PCfg) {
		c.Opening, c.Fence, c.Flake, c.WCr, c.W = false, fenceNone, 1, 1, 1
	}, only(cRegress)))
	add("minus/window", "only the newest state is kept, lag 1", with(P, lag1, func(c *PCfg) { c.Ret = retNewest; c.Spare = 0; c.SmpExp = 1; c.W = 1 }))
	add("with/samplers-only", "only the newest state is kept, lag 1, samplers never expire", with(P, lag1, func(c *PCfg) { c.Ret, c.Spare, c.W, c.Zomb, c.WCr, c.A = retNewest, 0, 1, 1, 1, 2 }))
	add("minus/parents", "lineages of the window guessed, lag 1, newest state only", with(P, lag1, func(c *PCfg) { c.KnowPar = false; c.Ret = retNewest; c.Spare = 0; c.W = 1 }))
	add("minus/parents-kept", "lineages of the window guessed, lag 1, window kept, two s1 of different lineage", with(P, lag1, func(c *PCfg) {
		c.KnowPar, c.Flake, c.W, c.Fence, c.WCr = false, 1, 1, fenceNone, 1
	}))
	add("minus/s0", "initFrom vanishes before the first state", with(P, func(c *PCfg) { c.Opening = false; c.InitFrom = true; c.Exp = 1; c.A = 2 }, only()))
	add("with/s0", "the same with step 0 saved first", with(P, func(c *PCfg) { c.InitFrom = true; c.Exp = 1; c.A = 2 }, only()))
	add("minus/run-filter", "", with(P, func(c *PCfg) { c.Foreign = true; c.RunFilter = false; c.A = 1 }, only(cForeign)))
	add("with/run-filter", "", with(P, func(c *PCfg) { c.Foreign = true; c.A = 1 }))
	add("minus/eval-keep", "retention deletes a state whose evaluation has no row", with(P, func(c *PCfg) {
		c.EvalKeep, c.Eval, c.SmpExp, c.W, c.A, c.Spare = false, 1, 1, 1, 2, 0
	}))
	add("with/eval-keep", "", with(P, func(c *PCfg) { c.Eval, c.SmpExp, c.W, c.A, c.Spare = 1, 1, 1, 2, 0 }))
	for _, byVersion := range []bool{true, false} {
		n := map[bool]string{true: "minus/session-key", false: "with/session-key"}[byVersion]
		add(n, "sampling session keyed by version alone; no claims, no opening state", with(P, func(c *PCfg) {
			c.SSVersion, c.Fence, c.Opening, c.Early, c.Fail, c.Flake = byVersion, fenceNone, false, false, 1, 1
		}, only(cPoisonLoaded, cFinalWeights)))
	}

	// Refill with a lag: a deterministic tombstone at slot 0, 1 or 2.
	for d := 0; d < 3; d++ {
		for i, n := range []string{"any", "discard", "certain", "per-step"} {
			add(fmt.Sprintf("refill/%s/tomb%d", n, d), "", with(P, lag1, func(c *PCfg) {
				c.DetTomb, c.Refill, c.A, c.S, c.Cost = 1<<d, i, 1, 5, true
				if i == refillPerStep {
					c.S = 6
				}
			}, only(cNondet, cChain, cDiscard, cFinalWeights)))
		}
	}

	// The candidate rule: save pipelined, row after, a state counts only with its row.
	cand := func(c *PCfg) { c.Save, c.Row, c.Early, c.CheckLast = savePiped, rowAfter, false, true }
	for _, k := range []struct {
		n string
		v int
	}{{"by-lineage", needByLin}, {"by-checkpoint", needByCkpt}} {
		need := func(c *PCfg) { c.Need = k.v }
		add("candidate/"+k.n+"/crash", "", with(P, cand, need))
		add("candidate/"+k.n+"/fail", "", with(P, cand, need, func(c *PCfg) { c.Fail = 1; c.W = 1 }))
		add("candidate/"+k.n+"/fail+expiry", "", with(P, cand, need, func(c *PCfg) { c.Fail = 1; c.Exp = 1; c.W = 1 }, only(cPoisonLoaded)))
		add("candidate/"+k.n+"/zombie", "", with(P, cand, need, func(c *PCfg) { c.Zomb = 1 }))
		add("candidate/"+k.n+"/zombie check-first", "", with(P, cand, need, func(c *PCfg) { c.Zomb = 1; c.CheckLast = false }))
		add("candidate/"+k.n+"/zombie base-record", "", with(P, cand, need, func(c *PCfg) {
			c.Zomb, c.Opening, c.S0, c.Base, c.Order = 1, false, true, true, orderStep
		}))
		add("candidate/"+k.n+"/name-order", "names without incarnation", with(P, cand, need, func(c *PCfg) { c.Fail = 1; c.W = 1; c.Order = orderName }))
	}

	// Without a durable artifact store: order by attempt, opening state, no claims.
	weak := func(c *PCfg) { c.Fence = fenceNone }
	for _, f := range faults {
		add("no-store/"+f.n, "", with(P, weak, f.f, func(c *PCfg) { c.W = 1 }))
	}
	add("no-store/zombie rest", "all but what a zombie makes workers drop", with(P, weak, func(c *PCfg) { c.Zomb = 1; c.W = 1 },
		only(cPoisonLoaded, cFinalWeights, cNondet, cRowMissing, cZombieUsed, cDeletedNeeded, cRegress, cForeign, cTie, cChain)))
	lagz := func(c *PCfg) { c.Zomb, c.SmpExp, c.W, c.A, c.Spare = 1, 1, 1, 2, 0 }
	add("no-store/lag1 zombie sampler-expiry", "", with(P, lag1, weak, lagz, only()))
	add("claims/lag1 zombie sampler-expiry", "", with(P, lag1, lagz, only()))
	add("no-store/lag1 zombie sampler-expiry fallback", "", with(P, lag1, weak, lagz, func(c *PCfg) { c.Fallback = true }, only()))
	add("no-store/lag1 zombie sampler-expiry reopen", "", with(P, lag1, weak, lagz, func(c *PCfg) { c.Reopen = true }, only()))

	// Fence by unloading the models of lower attempts.
	for _, f := range faults {
		add("unload/"+f.n, "", with(P, f.f, func(c *PCfg) { c.Fence = fenceUnload; c.W = 1 }))
	}

	// A newest state that cannot be loaded.
	add("expiry/spare0", "", with(P, func(c *PCfg) { c.Exp = 1; c.K = 3; c.W = 1; c.Spare = 0 }, only(cDeletedNeeded)))
	add("expiry/spare1", "", with(P, func(c *PCfg) { c.Exp = 1; c.K = 3; c.W = 1; c.Spare = 1 }, only(cDeletedNeeded, cNondet, cFinalWeights, cChain, cRowMissing)))
	add("expiry/spare1 rebuys", "", with(P, func(c *PCfg) { c.Exp = 1; c.K = 3; c.W = 1; c.Spare = 1 }, only(cRebuyCovered)))
	add("expiry/spare1 cover-trails", "", with(P, func(c *PCfg) { c.Exp = 1; c.K = 3; c.W = 1; c.Spare = 1; c.CovSpare = true }, only(cRebuyCovered, cDeletedNeeded, cNondet, cFinalWeights, cChain, cRowMissing)))

	// Resume from the manager's ledger.
	add("ledger/manager", "covered as soon as saved", with(P, func(c *PCfg) { c.ByManager = true; c.W = 1; c.Opening = false }))
	add("ledger/manager acked", "covered when the manager has it", with(P, func(c *PCfg) { c.ByManager = true; c.Ack = true; c.W = 1; c.Fence = fenceNone; c.Opening = false }, only(cRebuyCovered, cRegress, cNondet, cRowMissing)))

	// Room at the workers.
	add("room/1 of 2", "two slots a step, one worker with room for one", with(P, func(c *PCfg) { c.G, c.S, c.Cap, c.W, c.A = 2, 5, 1, 1, 2 }, only()))
	add("room/1 of 2 make-room", "", with(P, func(c *PCfg) { c.G, c.S, c.Cap, c.W, c.A, c.MakeRoom = 2, 5, 1, 1, 2, true }, only()))
	add("room/guess lag1", "slots leased ahead on a guess, room for one", with(P, lag1, func(c *PCfg) { c.Cap, c.W, c.A, c.Refill = 1, 1, 1, refillDiscard }, only()))
	for cap := 1; cap <= 3; cap++ {
		c := cap
		full := func(p *PCfg) { p.Cap, p.A, p.Flake, p.WCr = c, 2, 1, 1 }
		add(fmt.Sprintf("room/stale room%d", c), "groups of an abandoned lineage fill the worker", with(P, full, only()))
		add(fmt.Sprintf("room/stale room%d make-room", c), "", with(P, full, func(p *PCfg) { p.MakeRoom = true }, only()))
	}
	add("room/guess lag1 make-room", "", with(P, lag1, func(c *PCfg) { c.Cap, c.W, c.A, c.Refill, c.MakeRoom = 1, 1, 1, refillDiscard, true }, only()))
	add("room/window", "room for the window", with(P, lag1, func(c *PCfg) { c.G, c.S, c.Cap, c.W, c.A, c.K = 2, 8, 4, 1, 1, 3 }))

	// The other way to rank: base recorded with the claim, order by step, no opening state.
	based := func(c *PCfg) { c.Opening, c.S0, c.Base, c.Order = false, true, true, orderStep }
	for _, f := range faults {
		add("base-record/"+f.n, "", with(P, based, f.f, func(c *PCfg) { c.W = 1 }))
	}
	add("base-record/zombie2+fail", "", with(P, based, func(c *PCfg) { c.W = 1; c.Zomb = 2; c.Fail = 1 }))
	add("base-record/zombie2+fail by attempt", "", with(P, based, func(c *PCfg) { c.W = 1; c.Zomb = 2; c.Fail = 1; c.Order = orderAttempt }, only(cZombieUsed)))

	// Two faults at once.
	one := func(c *PCfg) { c.W = 1 }
	add("P/both/zombie2+fail", "", with(P, one, func(c *PCfg) { c.Zomb = 2; c.Fail = 1 }))
	add("P/both/zombie+flake", "", with(P, one, func(c *PCfg) { c.Zomb = 1; c.Flake = 1 }))
	add("P/both/zombie+restart", "", with(P, one, func(c *PCfg) { c.Zomb = 1; c.Rst = 1 }))
	add("P/both/zombie+worker", "", with(P, one, func(c *PCfg) { c.Zomb = 1; c.WCr = 1 }))
	add("P/both/fail+flake", "", with(P, one, func(c *PCfg) { c.Fail = 1; c.Flake = 1; c.WCr = 1 }))
	add("P/both/suspend+flake", "", with(P, one, func(c *PCfg) { c.Susp = 2; c.Flake = 1 }))
	add("P/both/lag1 zombie+sampler", "", with(P, lag1, one, func(c *PCfg) { c.Zomb = 1; c.SmpExp = 1 }))
	add("P/both/lag1 fail+sampler", "", with(P, lag1, one, func(c *PCfg) { c.Fail = 1; c.SmpExp = 1; c.WCr = 1 }))
	add("P/both/lag1 tomb", "", with(P, lag1, one, func(c *PCfg) { c.DetTomb = 2; c.S = 5; c.WCr = 1; c.SmpExp = 1 }))
	two := func(c *PCfg) { c.A = 2 }
	big("P/big/zombie2", "", with(P, func(c *PCfg) { c.Zomb = 2 }))
	big("P/big/three steps", "", with(P, one, func(c *PCfg) { c.K, c.S, c.Zomb, c.Fail = 3, 4, 1, 1 }))
	big("P/big/zombie+fail+flake+worker", "", with(P, one, two, func(c *PCfg) { c.Zomb, c.Fail, c.Flake, c.WCr = 1, 1, 1, 1 }))
	big("P/big/zombie+fail+restart+sampler", "", with(P, one, two, func(c *PCfg) { c.Zomb, c.Fail, c.Rst, c.SmpExp = 1, 1, 1, 1 }))
	big("P/big/lag1 zombie2", "", with(P, lag1, one, func(c *PCfg) { c.Zomb = 2 }))
	big("P/big/lag1 zombie W2", "", with(P, lag1, func(c *PCfg) { c.Zomb = 1 }))
	big("P/big/lag1 zombie+fail", "", with(P, lag1, one, func(c *PCfg) { c.Zomb, c.Fail = 1, 1 }))
	big("P/big/lag1 group2", "", with(P, lag1, two, func(c *PCfg) { c.G, c.S, c.WCr = 2, 7, 1 }))
	big("P/big/lag1 group2 tomb", "", with(P, lag1, two, func(c *PCfg) { c.G, c.S, c.DetTomb, c.SmpExp = 2, 8, 4, 1 }))
	big("P/big/lag1 zombie+fail+sampler", "", with(P, lag1, one, two, func(c *PCfg) { c.Zomb, c.Fail, c.SmpExp = 1, 1, 1 }))
	big("P/big/lag2", "", with(P, one, func(c *PCfg) { c.K, c.L, c.S, c.Zomb, c.SmpExp = 3, 2, 4, 1, 1 }))
	big("P/big/group2 zombie", "", with(P, one, func(c *PCfg) { c.G, c.S, c.Zomb = 2, 5, 1 }))
	big("no-store/big/zombie+fail+flake", "", with(P, weak, one, two, func(c *PCfg) { c.Zomb, c.Fail, c.Flake = 1, 1, 1 },
		only(cPoisonLoaded, cFinalWeights, cNondet, cRowMissing, cZombieUsed, cDeletedNeeded, cRegress, cForeign, cTie, cChain)))

	costs(P, add)
	return append(append(wires(), managers()...), samplings()...)
}

func samplings() []Scenario {
	var out []Scenario
	smp := func(name, note string, f func(*SCfg)) {
		c := SCfg{Lost: 1, Gone: 1, Crash: 1, PostInID: true, LearnerBeat: true}
		f(&c)
		out = append(out, Scenario{Name: name, Note: note, Run: func(max int) Result {
			return Explore[SS](&Sampling{c: c}, Options{MaxStates: max, Liveness: true})
		}})
	}
	smp("sampling/P", "seed (slot, member, turn, try); id adds a post counter", func(c *SCfg) {})
	smp("sampling/flake", "", func(c *SCfg) { c.Flake = 1 })
	smp("sampling/written same-id", "a lost future is asked for again under its id", func(c *SCfg) { c.PostInID = false })
	smp("sampling/written try", "a lost future raises the try", func(c *SCfg) { c.PostInID = false; c.TryOnLoss = true })
	smp("sampling/try-on-crash", "a lease given on raises the try", func(c *SCfg) { c.TryOnCrash = true })
	smp("sampling/written session", "only workers send heartbeats of the session", func(c *SCfg) { c.LearnerBeat = false })
	return out
}

// What is bought twice, discarded, or bought for a zombie: the most over all schedules.
func costs(P PCfg, add addFn) {
	cost := func(c *PCfg) { c.Cost = true; only()(c) }
	for _, l := range []struct {
		n string
		f mod
	}{
		{"lag0 G1", func(c *PCfg) {}},
		{"lag0 G2", func(c *PCfg) { c.G, c.S = 2, 5 }},
		{"lag1 G1", lag1},
		{"lag0 three steps", func(c *PCfg) { c.K, c.S = 3, 4 }},
		{"lag1 four steps", func(c *PCfg) { c.K, c.L, c.S = 4, 1, 5 }},
	} {
		two := func(c *PCfg) { c.A = 2 }
		hello := func(c *PCfg) { c.WaitHello = true }
		add("cost/"+l.n+"/learner", "one learner crash, leases before every Hello", with(P, l.f, two, cost))
		add("cost/"+l.n+"/learner hello", "one learner crash, no lease before every Hello", with(P, l.f, two, hello, cost))
		add("cost/"+l.n+"/worker", "one worker crash, no learner crash", with(P, l.f, cost, hello, func(c *PCfg) { c.WCr = 1; c.A = 1 }))
		add("cost/"+l.n+"/both", "a learner crash and two worker crashes", with(P, l.f, two, hello, cost, func(c *PCfg) { c.WCr = 2 }))
		add("cost/"+l.n+"/suspend", "suspend once", with(P, l.f, two, hello, cost, func(c *PCfg) { c.Susp = 1 }))
		add("cost/"+l.n+"/zombie", "attempt 2 beside attempt 1", with(P, l.f, two, cost, func(c *PCfg) { c.Zomb = 1 }))
		add("cost/"+l.n+"/flake", "flake, learner crash, worker crash", with(P, l.f, two, hello, cost, func(c *PCfg) { c.Flake = 1; c.WCr = 1 }))
		add("cost/"+l.n+"/flake prefer-row", "the same, tombstones taken from the row", with(P, l.f, two, hello, cost, func(c *PCfg) { c.Flake = 1; c.WCr = 1; c.PreferRow = true }))
		add("cost/"+l.n+"/flake late", "the same, announced after the state is saved", with(P, l.f, two, hello, cost, func(c *PCfg) { c.Flake = 1; c.WCr = 1; c.Early = false }))
	}
}

func wires() []Scenario {
	var out []Scenario
	wire := func(name, note string, f func(*WCfg)) {
		c := WCfg{Dedupe: true, Lost: 1, Never: 1, Reject: 1, Fail: 1, Gone: 1, Restart: 1}
		f(&c)
		out = append(out, Scenario{Name: name, Note: note, Run: func(max int) Result {
			return Explore[WS](&Wire{c}, Options{MaxStates: max, Liveness: true})
		}})
	}
	wire("wire/P", "fb+optim together, save after clean replies", func(c *WCfg) {})
	wire("wire/ahead", "and the next step submitted right behind the save", func(c *WCfg) { c.Ahead = true })
	wire("wire/await", "optim only after clean fb replies", func(c *WCfg) { c.Await = true })
	wire("wire/piped", "save behind optim_step", func(c *WCfg) { c.Piped = true })
	wire("wire/await+piped", "optim after clean fb, save behind optim", func(c *WCfg) { c.Await, c.Piped = true, true })
	wire("wire/no-dedupe", "server repeats a repeated request", func(c *WCfg) { c.Dedupe = false })
	wire("wire/new-seq", "a lost submit is sent under a new number", func(c *WCfg) { c.NewSeq = true })
	wire("wire/reuse-seq", "a refused submit's number is used again", func(c *WCfg) { c.ReuseSeq = true })
	wire("wire/go-on", "continues after an unclean forward_backward", func(c *WCfg) { c.Go = true })
	wire("wire/resurrect", "a restarted server has the model as last saved", func(c *WCfg) { c.Resurrect = true })
	wire("wire/rid-reuse", "a restarted server counts request ids from the start", func(c *WCfg) { c.RidReuse = true })
	wire("wire/arrival", "server executes by arrival", func(c *WCfg) { c.ByArrival = true })
	return out
}

func managers() []Scenario {
	var out []Scenario
	mgr := func(name, note string, f func(*MCfg)) {
		c := MCfg{Verdict: true, Restarts: 2, Crash: 1, LiveGet: true, Lock: true}
		f(&c)
		out = append(out, Scenario{Name: name, Note: note, Run: func(max int) Result {
			return Explore[MS](&Mgr{c}, Options{MaxStates: max, Liveness: true})
		}})
	}
	mgr("manager/written", "a missing Job in the cache is a lost attempt", func(c *MCfg) { c.LiveGet, c.Lock = false, false })
	mgr("manager/live-get", "a missing Job is looked up first", func(c *MCfg) { c.Lock = false })
	mgr("manager/P", "live look-up, status write with resource version", func(c *MCfg) {})
	mgr("manager/P job-deleted", "", func(c *MCfg) { c.JobGone = 1 })
	mgr("manager/P delayed-create", "a dead manager's create lands later", func(c *MCfg) { c.Delayed = 1 })
	mgr("manager/P node-lost", "", func(c *MCfg) { c.NodeLost = 1 })
	mgr("manager/no-lock late-write", "a dead manager's status write lands later", func(c *MCfg) { c.Lock = false; c.LateWrite = 1 })
	mgr("manager/P late-write", "", func(c *MCfg) { c.LateWrite = 1 })
	mgr("manager/job-first", "Job before status", func(c *MCfg) { c.JobFirst = true })
	mgr("manager/recreate", "a missing Job is created again under its number", func(c *MCfg) { c.Recreate = true; c.JobGone = 1 })
	return out
}
