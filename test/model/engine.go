// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"sort"
	"time"
)

// Act is one transition's label: a kind and up to three operands.
type Act struct{ Kind, A, B, C uint8 }

// Code names a broken invariant; 0 means that none is broken.
type Code uint8

// Model is a finite transition system over a pointer-free state S.
type Model[S any] interface {
	Init() S
	// Next calls emit for each successor. fault marks what the environment does to us;
	// liveness is decided without faults.
	Next(s *S, emit func(a Act, fault bool, t *S))
	Check(s *S) Code
	Done(s *S) bool
	Label(a Act, from, to *S) string
	CodeName(c Code) string
}

// Options bound an exploration.
type Options struct {
	MaxStates int
	Liveness  bool
}

// Finding is one broken invariant with its shortest trace.
type Finding struct {
	Code  Code
	Name  string
	Trace []string
	Last  string
}

// Result of an exploration.
type Result struct {
	States, Depth, Terminal int
	Edges                   int
	Complete                bool
	Findings                []Finding
	Took                    time.Duration
	DoneStates              int
	Note                    string
	Finals                  []string
}

const codeStuck Code = 255

// Explore walks the reachable states breadth first, so the first trace of a finding is a shortest one.
func Explore[S any](m Model[S], o Options) Result {
	start := time.Now()
	st := newStore()
	init := m.Init()
	res := Result{Complete: true}
	st.add(fingerprint(&init), 0)
	type node struct {
		id uint32
		s  S
	}
	level := []node{{0, init}}
	found := map[Code]uint32{}
	var done []uint32
	var from, to []uint32
	cut := map[uint32]bool{}
	note := func(c Code, id uint32) {
		cut[id] = true
		if _, ok := found[c]; !ok {
			found[c] = id
		}
	}
	if c := m.Check(&init); c != 0 {
		note(c, 0)
	}
	if m.Done(&init) {
		done = append(done, 0)
	}
	for len(level) > 0 {
		var next []node
		for i := range level {
			nd := &level[i]
			if cut[nd.id] {
				continue
			}
			succ := 0
			m.Next(&nd.s, func(a Act, fault bool, t *S) {
				succ++
				res.Edges++
				id, fresh := st.add(fingerprint(t), nd.id)
				if o.Liveness && !fault && id != nd.id {
					from = append(from, nd.id)
					to = append(to, id)
				}
				if !fresh {
					return
				}
				if c := m.Check(t); c != 0 {
					note(c, id)
				}
				if m.Done(t) {
					done = append(done, id)
				}
				next = append(next, node{id, *t})
			})
			if succ == 0 {
				res.Terminal++
			}
		}
		level = next
		res.Depth++
		if o.MaxStates > 0 && len(st.fps) > o.MaxStates {
			res.Complete = false
			break
		}
	}
	res.States = len(st.fps)
	res.DoneStates = len(done)
	if o.Liveness && res.Complete {
		if id, ok := stuck(len(st.fps), from, to, done, cut); ok {
			found[codeStuck] = id
		}
	}
	codes := make([]int, 0, len(found))
	for c := range found {
		codes = append(codes, int(c))
	}
	sort.Ints(codes)
	for _, c := range codes {
		tr, last := trace(m, st, found[Code(c)])
		name := "STUCK"
		if Code(c) != codeStuck {
			name = m.CodeName(Code(c))
		}
		res.Findings = append(res.Findings, Finding{Code(c), name, tr, last})
	}
	res.Took = time.Since(start)
	runtime.GC()
	return res
}
