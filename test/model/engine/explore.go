// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"
)

// Act is the label of one transition: a kind and up to three operands.
type Act struct{ Kind, A, B, C uint8 }

// Code names a broken invariant; 0 means that none is broken.
type Code uint8

// Stuck is the code of a state from which no path without faults leads to completion.
const Stuck Code = 255

// Model is a finite transition system over states S, which hold no pointers and no padding.
type Model[S any] interface {
	Init() S
	// Next calls emit for each successor of a state. A fault is a step that the system does not make by itself; liveness
	// is decided without faults.
	Next(from *S, emit func(act Act, fault bool, to *S))
	Check(state *S) Code
	Done(state *S) bool
	Label(act Act, from, to *S) string
	CodeName(code Code) string
}

// Options bound an exploration.
type Options struct {
	// MaxStates ends the exploration when more states were found; 0 means no bound.
	MaxStates int
}

// Finding is a broken invariant with a shortest trace.
type Finding struct {
	Code  Code
	Name  string
	Trace []string
}

// Result is the result of an exploration.
type Result struct {
	// States counts the states, DoneStates the states that are done, and Depth the levels.
	States, DoneStates, Depth int
	// Complete means that all states were explored.
	Complete bool
	Findings []Finding
	Took     time.Duration
	// Note is a model's own report.
	Note string
}

// node is a state of the level that is being explored.
type node[S any] struct {
	id    uint32
	state S
}

// explorer walks the reachable states.
type explorer[S any] struct {
	model Model[S]
	seen  *fingerprints
	graph graph
	// found has the first state of each broken invariant. The successors of a broken state are not explored.
	found map[Code]uint32
	next  []node[S]
	depth int
}

// Explore walks the reachable states breadth first, so that the first trace of a finding is a shortest one.
func Explore[S any](model Model[S], options Options) Result {
	start := time.Now()
	e := &explorer[S]{
		model: model, seen: newFingerprints(), found: map[Code]uint32{}, graph: graph{broken: map[uint32]bool{}},
	}
	complete := e.walk(options.MaxStates)
	if complete {
		if id, ok := e.graph.stuck(e.seen.count()); ok {
			e.found[Stuck] = id
		}
	}
	return Result{
		States: e.seen.count(), DoneStates: len(e.graph.done), Depth: e.depth, Complete: complete,
		Findings: e.findings(), Took: time.Since(start),
	}
}

// walk explores level by level, and reports whether it explored all of them.
func (e *explorer[S]) walk(most int) bool {
	init := e.model.Init()
	e.seen.add(fingerprint(&init), 0)
	e.visit(0, &init)
	for level := e.next; len(level) > 0; level = e.next {
		e.next = nil
		for i := range level {
			e.expand(&level[i])
		}
		e.depth++
		if most > 0 && e.seen.count() > most {
			return false
		}
	}
	return true
}

// expand adds the successors of a state.
func (e *explorer[S]) expand(from *node[S]) {
	if e.graph.broken[from.id] {
		return
	}
	e.model.Next(&from.state, func(_ Act, fault bool, to *S) {
		id, fresh := e.seen.add(fingerprint(to), from.id)
		if !fault && id != from.id {
			e.graph.edge(from.id, id)
		}
		if fresh {
			e.visit(id, to)
		}
	})
}

// visit checks a state that was not seen before.
func (e *explorer[S]) visit(id uint32, state *S) {
	if code := e.model.Check(state); code != 0 {
		e.graph.broken[id] = true
		if _, ok := e.found[code]; !ok {
			e.found[code] = id
		}
	}
	if e.model.Done(state) {
		e.graph.done = append(e.graph.done, id)
	}
	e.next = append(e.next, node[S]{id, *state})
}

// findings lists the broken invariants, in the order of the codes.
func (e *explorer[S]) findings() []Finding {
	var findings []Finding
	for code, id := range e.found {
		name := "STUCK"
		if code != Stuck {
			name = e.model.CodeName(code)
		}
		findings = append(findings, Finding{Code: code, Name: name, Trace: e.trace(id)})
	}
	slices.SortFunc(findings, func(a, b Finding) int { return int(a.Code) - int(b.Code) })
	return findings
}

// trace labels the transitions that lead from the initial state to another one. It finds them again by their
// fingerprints.
func (e *explorer[S]) trace(id uint32) []string {
	state := e.model.Init()
	var labels []string
	for _, step := range e.seen.path(id) {
		want, found := e.seen.of(step), false
		var next S
		e.model.Next(&state, func(act Act, _ bool, to *S) {
			if !found && fingerprint(to) == want {
				found, next = true, *to
				labels = append(labels, e.model.Label(act, &state, to))
			}
		})
		if !found {
			return append(labels, "(the trace cannot be followed)")
		}
		state = next
	}
	return labels
}
