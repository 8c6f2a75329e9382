// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"unsafe"
)

// fingerprints is a set of states, each stored as a hash of 64 bits with the state from which it was found. The field
// table is an open hash table: an entry is 1 plus a position in hashes, or 0 if it is empty.
type fingerprints struct {
	table  []uint32
	mask   uint64
	hashes []uint64
	parent []uint32
}

func newFingerprints() *fingerprints {
	n := uint64(1 << 16)
	return &fingerprints{table: make([]uint32, n), mask: n - 1}
}

func (f *fingerprints) count() int { return len(f.hashes) }

// of returns the hash of a state.
func (f *fingerprints) of(id uint32) uint64 { return f.hashes[id] }

// path lists the states on the path from the initial state to the given one, without the initial state.
func (f *fingerprints) path(id uint32) []uint32 {
	var path []uint32
	for ; id != 0; id = f.parent[id] {
		path = append(path, id)
	}
	slices.Reverse(path)
	return path
}

// add adds a state, and returns its number and whether it is new.
func (f *fingerprints) add(hash uint64, parent uint32) (uint32, bool) {
	i := hash & f.mask
	for ; f.table[i] != 0; i = (i + 1) & f.mask {
		if id := f.table[i] - 1; f.hashes[id] == hash {
			return id, false
		}
	}
	f.hashes = append(f.hashes, hash)
	f.parent = append(f.parent, parent)
	id := uint32(len(f.hashes))
	f.table[i] = id
	if uint64(len(f.hashes))*10 > uint64(len(f.table))*6 {
		f.grow()
	}
	return id - 1, true
}

func (f *fingerprints) grow() {
	n := uint64(len(f.table)) * 2
	f.table = make([]uint32, n)
	f.mask = n - 1
	for k, hash := range f.hashes {
		i := hash & f.mask
		for f.table[i] != 0 {
			i = (i + 1) & f.mask
		}
		f.table[i] = uint32(k + 1)
	}
}

// fingerprint hashes the state's bytes; S must hold no pointers and no padding that is not zero.
func fingerprint[S any](s *S) uint64 {
	n := int(unsafe.Sizeof(*s))
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), n)
	const m1, m2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
	h := uint64(n) * m1
	for len(b) >= 8 {
		v := *(*uint64)(unsafe.Pointer(&b[0]))
		h ^= v * m2
		h = (h<<29 | h>>35) * m1
		h ^= h >> 32
		b = b[8:]
	}
	for _, c := range b {
		h ^= uint64(c)
		h *= m1
		h ^= h >> 29
	}
	h ^= h >> 30
	h *= m2
	h ^= h >> 27
	h *= 0x94D049BB133111EB
	h ^= h >> 31
	return h
}
