// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"slices"
	"sync"
)

// mostRemembered bounds each of a memo's two generations, in bytes of text and ids: enough for the
// conversations that a worker has under way.
const mostRemembered = 4 << 20

// memo remembers the ids of texts, as long as they are asked for. It has two generations: what is asked for is
// in the young one, and when that is full, the old one is forgotten and the young one is the old.
type memo struct {
	mu         sync.Mutex
	young, old map[string][]int32
	size       int
}

func (m *memo) get(text []byte) (ids []int32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ids, ok = m.young[string(text)]; ok {
		return ids, true
	}
	if ids, ok = m.old[string(text)]; ok {
		m.keep(string(text), ids)
	}
	return ids, ok
}

func (m *memo) put(text string, ids []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(text, slices.Clone(ids))
}

func (m *memo) keep(text string, ids []int32) {
	const entry = 64 // what a map takes for it, about
	m.size += len(text) + 4*len(ids) + entry
	if m.size > mostRemembered || m.young == nil {
		m.young, m.old = map[string][]int32{}, m.young
		m.size = len(text) + 4*len(ids) + entry
	}
	m.young[text] = ids
}
