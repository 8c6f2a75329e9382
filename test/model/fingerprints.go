// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "unsafe"

type store struct {
	table  []uint32
	mask   uint64
	fps    []uint64
	parent []uint32
}

func newStore() *store {
	n := uint64(1 << 16)
	return &store{table: make([]uint32, n), mask: n - 1}
}

func (st *store) add(fp uint64, parent uint32) (uint32, bool) {
	i := fp & st.mask
	for {
		v := st.table[i]
		if v == 0 {
			break
		}
		if st.fps[v-1] == fp {
			return v - 1, false
		}
		i = (i + 1) & st.mask
	}
	st.fps = append(st.fps, fp)
	st.parent = append(st.parent, parent)
	id := uint32(len(st.fps))
	st.table[i] = id
	if uint64(len(st.fps))*10 > uint64(len(st.table))*6 {
		st.grow()
	}
	return id - 1, true
}

func (st *store) grow() {
	n := uint64(len(st.table)) * 2
	st.table = make([]uint32, n)
	st.mask = n - 1
	for k, fp := range st.fps {
		i := fp & st.mask
		for st.table[i] != 0 {
			i = (i + 1) & st.mask
		}
		st.table[i] = uint32(k + 1)
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
