// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"slices"
	"sync"
)

// mostRemembered limits each of a memo's two generations, in bytes of text and ids. It is enough for the
// conversations that a worker has in progress.
const mostRemembered = 4 << 20

// memo caches the ids of texts that are in use. It has two generations: a used text moves to the young one. When the
// young generation is full, it becomes the old one, and the old one is dropped.
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
	const entry = 64 // about the size of its entry in a map
	m.size += len(text) + 4*len(ids) + entry
	if m.size > mostRemembered || m.young == nil {
		m.young, m.old = map[string][]int32{}, m.young
		m.size = len(text) + 4*len(ids) + entry
	}
	m.young[text] = ids
}
