// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
)

// group is the content of a finished group: Claimed is the lineage that was asked for, Actual the lineage of the
// weights that were sampled.
type group struct {
	Slot, Claimed, Actual uint8
	Tombstone             bool
}

type lineage struct {
	Parent, Step uint8
	Corrupt      bool
	Members      string // The numbers of its groups in slot order.
}

type checkpoint struct {
	Attempt, Model, Step, Cursor, Lineage, Weights uint8
	Superseded, Foreign                            bool
}

type sampler struct{ Lineage, Weights uint8 }
type row struct{ Lineage, Attempt, Model uint8 }

// numbered assigns small numbers to comparable values. The number 0 means none.
type numbered[T comparable] struct {
	numbers map[T]uint8
	all     []T
}

func newNumbered[T comparable](zero T) *numbered[T] {
	n := &numbered[T]{numbers: map[T]uint8{}}
	n.of(zero)
	return n
}

func (n *numbered[T]) of(value T) uint8 {
	if i, ok := n.numbers[value]; ok {
		return i
	}
	if len(n.all) > foreignLineage {
		panic(fmt.Sprintf("more values than numbers: %T", value))
	}
	i := uint8(len(n.all))
	n.numbers[value] = i
	n.all = append(n.all, value)
	return i
}

// each calls yield for the numbers of a set.
func (n *numbered[T]) each(in *set, yield func(id uint8, value T)) {
	for id := 1; id < len(n.all); id++ {
		if in.has(uint8(id)) {
			yield(uint8(id), n.all[id])
		}
	}
}

// content has all values that states refer to by number. The lineage 0 is the lineage of version 0.
type content struct {
	groups      *numbered[group]
	lineages    *numbered[lineage]
	checkpoints *numbered[checkpoint]
	samplers    *numbered[sampler]
	rows        *numbered[row]
}

func newContent() *content {
	return &content{
		groups: newNumbered(group{Slot: none}), lineages: newNumbered(lineage{Parent: none}),
		checkpoints: newNumbered(checkpoint{Attempt: none}), samplers: newNumbered(sampler{Lineage: none}),
		rows: newNumbered(row{Lineage: none}),
	}
}

// chain lists the lineages from version 0 to the given one.
func (c *content) chain(of uint8) []uint8 {
	var chain []uint8
	for ; ; of = c.lineages.all[of].Parent {
		chain = append(chain, of)
		if of == 0 || of >= foreignLineage {
			break
		}
	}
	slices.Reverse(chain)
	return chain
}

// extends reports whether a lineage equals another lineage or descends from it.
func (c *content) extends(of, from uint8) bool {
	for ; of != from; of = c.lineages.all[of].Parent {
		if of == 0 {
			return false
		}
	}
	return true
}

// hasSampler reports whether sampler weights of a lineage exist.
func (c *content) hasSampler(s *State, of uint8) bool {
	found := false
	c.samplers.each(&s.Samplers, func(_ uint8, w sampler) { found = found || w.Lineage == of })
	return found
}

// hasRow reports whether a row of a lineage exists.
func (c *content) hasRow(s *State, of uint8) bool {
	found := false
	c.rows.each(&s.Rows, func(_ uint8, r row) { found = found || r.Lineage == of })
	return found
}
