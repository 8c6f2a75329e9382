// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sort"
	"strings"
)

// Scenario is a named exploration; recorded says what came out of it.
type Scenario struct {
	Name, Note string
	Run        func(max int) Result
	Big        bool // minutes together, not seconds: only with -big
}

// compare compares a result with what is recorded.
func (sc Scenario) compare(r Result) string {
	got := map[Code]bool{}
	for _, f := range r.Findings {
		got[f.Code] = true
	}
	var miss []string
	for _, c := range recorded[sc.Name] {
		if !got[c] {
			miss = append(miss, fmt.Sprintf("code %d was broken and holds now", c))
		}
		delete(got, c)
	}
	for c := range got {
		miss = append(miss, fmt.Sprintf("code %d stored and is broken now", c))
	}
	if !r.Complete {
		miss = append(miss, "incomplete")
	}
	return strings.Join(miss, "; ")
}

type mod func(*PCfg)

// asWritten is the protocol as design.md had it when this model was made.
func asWritten() PCfg {
	return PCfg{K: 2, G: 1, L: 0, W: 2, S: 3, A: 3, Save: savePiped, Row: rowAfter, Fence: fenceNone, Order: orderName,
		Refill: refillAny, Ret: retNewest, KnowPar: true, SSVersion: true}
}

// proposed is the protocol with the changes of the report.
func proposed() PCfg {
	return PCfg{K: 2, G: 1, L: 0, W: 2, S: 3, A: 3, Save: saveClean, Row: rowAhead, Fence: fenceClaim, Order: orderAttempt,
		Refill: refillCertain, Ret: retWindow, KnowPar: true, RunFilter: true, Opening: true, Early: true, EvalKeep: true, Spare: 1}
}

func with(c PCfg, fs ...mod) PCfg {
	for _, f := range fs {
		f(&c)
	}
	return c
}

func only(cs ...Code) mod {
	return func(c *PCfg) {
		c.Only = map[Code]bool{}
		for _, x := range cs {
			c.Only[x] = true
		}
	}
}

func proto(c PCfg) func(int) Result {
	return func(max int) Result {
		p := newProto(c)
		if c.Flake > 0 {
			p.finals = map[string]int{}
		}
		r := Explore[PS](p, Options{MaxStates: max, Liveness: true})
		if c.Cost {
			r.Note = fmt.Sprintf("most bought twice %d, most discarded %d, most bought for a zombie %d", p.maxRebuy, p.maxDisc, p.maxZBuy)
		}
		if c.Flake > 0 {
			var k []string
			for f := range p.finals {
				k = append(k, f)
			}
			sort.Strings(k)
			r.Note += fmt.Sprintf(" %d possible outcomes", len(k))
			r.Finals = k
		}
		return r
	}
}

func lag1(c *PCfg) { c.K, c.L, c.S = 3, 1, 4 }

var faults = []struct {
	n string
	f mod
}{
	{"crash", func(c *PCfg) {}},
	{"worker", func(c *PCfg) { c.WCr = 2 }},
	{"fail", func(c *PCfg) { c.Fail = 1 }},
	{"flake", func(c *PCfg) { c.Flake = 1; c.WCr = 1 }},
	{"zombie", func(c *PCfg) { c.Zomb = 1 }},
	{"sampler-expiry", func(c *PCfg) { c.SmpExp = 1; c.WCr = 1 }},
	{"server-restart", func(c *PCfg) { c.Rst = 1 }},
	{"suspend", func(c *PCfg) { c.Susp = 1 }},
}

func scenarios() []Scenario {
	var out []Scenario
	add := func(name, note string, c PCfg) {
		out = append(out, Scenario{Name: name, Note: note, Run: proto(c)})
	}
	big := func(name, note string, c PCfg) {
		out = append(out, Scenario{Name: name, Note: note, Run: proto(c), Big: true})
	}
	W, P := asWritten(), proposed()

	// The design as written: one shortest trace for each invariant.
	add("written/poison", "save pipelined behind a failed chunk", with(W, func(c *PCfg) { c.Fail = 1 }, only(cPoisonLoaded)))
	add("written/row", "crash between state save and row", with(W, only(cRowMissing)))
	add("written/late-save", "in-flight save of a dead attempt, flake", with(W, func(c *PCfg) { c.Flake = 1; c.WCr = 1 }, only(cRegress)))
	add("written/zombie-used", "", with(W, func(c *PCfg) { c.Zomb = 1 }, only(cZombieUsed)))
	add("written/zombie-covers", "", with(W, func(c *PCfg) { c.Zomb = 1 }, only(cRebuyCovered)))
	add("written/zombie-deletes", "", with(W, func(c *PCfg) { c.Zomb = 1 }, only(cDeletedNeeded)))
	add("written/tie", "same attempt saves a step twice", with(W, func(c *PCfg) { c.Fail = 1 }, only(cTie)))
	add("written/session-key", "sampling session keyed by version", with(W, func(c *PCfg) { c.Flake = 1; c.WCr = 1 }, only(cFinalWeights)))
	add("written/foreign", "another run's checkpoint in the listing", with(W, func(c *PCfg) { c.Foreign = true; c.A = 1 }, only(cForeign)))
	add("written/expiry", "the newest state expires", with(W, func(c *PCfg) { c.Exp = 1 }, only(cDeletedNeeded)))
	add("written/lag-sampler", "lag 1, sampler of k-1 expires", with(W, lag1, func(c *PCfg) { c.SmpExp = 1; c.A = 2; c.W = 1 }, only()))
	add("written/lag-parent", "lag 1, lineage of k-1 unknown after a resume", with(W, lag1, func(c *PCfg) { c.KnowPar = false; c.A = 2; c.W = 1 }, only()))
	add("written/lag-refill", "lag 1, a filtered slot moves its successor to another step", with(W, lag1, func(c *PCfg) { c.DetTomb = 2; c.S = 5; c.A = 1 }, only(cNondet, cChain)))
	add("written/deterministic", "crashes alone never change the final lineage", with(W, func(c *PCfg) { c.WCr = 1 }, only(cNondet, cChain, cFinalWeights)))

	// The proposal under every fault.
	for _, f := range faults {
		add("P/lag0/"+f.n, "", with(P, f.f))
	}
	for _, f := range faults {
		add("P/lag1/"+f.n, "", with(P, lag1, f.f, func(c *PCfg) { c.W = 1 }))
	}
	for _, f := range faults {
		add("P/group2/"+f.n, "", with(P, f.f, func(c *PCfg) { c.G, c.S, c.A = 2, 5, 2 }))
	}
	for _, f := range faults {
		add("P/eval/"+f.n, "", with(P, f.f, func(c *PCfg) { c.Eval = 1; c.W = 1; c.SmpExp = 1 }))
	}
	return append(out, more(P, add, big)...)
}
