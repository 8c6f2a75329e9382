// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSize = 1 << 14
	// maxCached is the longest piece that is cached, in bytes. Most words are shorter.
	maxCached = 48
)

// cached is a piece with its ids.
type cached struct {
	text string
	ids  []int32
}

var seed = maphash.MakeSeed()

// slot returns the place of a piece in the cache, or nil if the piece is too long for the cache.
func (t *Tokenizer) slot(text string) *atomic.Pointer[cached] {
	if len(text) > maxCached {
		return nil
	}
	return &t.cache[maphash.String(seed, text)%cacheSize]
}
