// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Content of a group.
type group struct {
	Slot, Claimed, Actual uint8
	Tomb                  bool
}

type lineage struct {
	Parent, Step uint8
	Poison       bool
	Members      string // content ids in slot order
}

type ckpt struct {
	Att, Inc, Step, Cur, Lin, W uint8
	Z, Foreign                  bool
}

type sampler struct{ Lin, W uint8 }
type rowKey struct{ Lin, Att, Inc uint8 }

// intern gives small ids to comparable values.
type intern[T comparable] struct {
	ids map[T]uint8
	all []T
}

func newIntern[T comparable](zero ...T) *intern[T] {
	in := &intern[T]{ids: map[T]uint8{}}
	for _, z := range zero {
		in.id(z)
	}
	return in
}

func (in *intern[T]) id(v T) uint8 {
	if i, ok := in.ids[v]; ok {
		return i
	}
	if len(in.all) > 250 {
		panic(fmt.Sprintf("intern table full: %T", v))
	}
	i := uint8(len(in.all))
	in.ids[v] = i
	in.all = append(in.all, v)
	return i
}
