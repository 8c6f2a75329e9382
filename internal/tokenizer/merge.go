// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "sync"

// fewBytes is the length of a piece up to which merge searches all pairs for the next one. That takes quadratic time,
// which is short for such a piece. Longer pieces need a heap.
const fewBytes = 64

// merge appends the tokens of a piece. It begins with the bytes of the piece, and repeatedly merges the neighbours of
// the lowest rank, the leftmost ones first.
func (t *BPE) merge(dst []int32, piece string) []int32 {
	if len(piece) > fewBytes {
		return t.mergeMany(dst, piece)
	}
	var links [fewBytes]link
	n := len(piece)
	for i := range n - 1 {
		links[i] = newLink(t.byteIDs[piece[i]], t.pairs.bytes[int(piece[i])<<8|int(piece[i+1])])
	}
	links[n-1] = newLink(t.byteIDs[piece[n-1]], noRank)
	for n > 1 {
		best, at := uint32(noRank), 0
		for i, l := range links[:n-1] {
			if l.rank() < best {
				best, at = l.rank(), i
			}
		}
		if best == noRank {
			break
		}
		copy(links[at+1:n-1], links[at+2:n])
		n--
		id, rank := t.pairs.into[best], uint32(noRank)
		if at+1 < n {
			rank = t.pairs.rank(id, links[at+1].id())
		}
		links[at] = newLink(id, rank)
		if at > 0 {
			before := links[at-1].id()
			links[at-1] = newLink(before, t.pairs.rank(before, id))
		}
	}
	for _, l := range links[:n] {
		dst = append(dst, l.id())
	}
	return dst
}

// link is a token of a short piece; the high half has the rank of its merge with the next token.
type link uint64

func newLink(id int32, rank uint32) link { return link(rank)<<32 | link(id) }

func (l link) id() int32    { return int32(l) }
func (l link) rank() uint32 { return uint32(l >> 32) }

// chain is the state of merging a long piece: a doubly linked list of tokens, by the index of their first byte, and a
// heap of the possible merges.
type chain struct {
	ids        []int32
	ranks      []uint32 // The rank of a token with the next token; noRank for a token that was merged into another.
	next, prev []int32
	heap       []uint64 // Each has a rank, then an index.
}

var chains = sync.Pool{New: func() any { return new(chain) }}

// mergeMany does the same as merge, in n log n time for n bytes.
func (t *BPE) mergeMany(dst []int32, piece string) []int32 {
	c := chains.Get().(*chain)
	defer chains.Put(c)
	c.reset(len(piece))
	for i := range len(piece) {
		c.ids[i] = t.byteIDs[piece[i]]
		if i+1 < len(piece) {
			c.offer(i, t.pairs.bytes[int(piece[i])<<8|int(piece[i+1])])
		}
	}
	for len(c.heap) > 0 {
		least := c.pop()
		at, rank := int(uint32(least)), uint32(least>>32)
		if c.ranks[at] != rank {
			continue // One of the two has been merged with another token since.
		}
		merged := c.next[at]
		after := c.next[merged]
		c.ids[at] = t.pairs.into[rank]
		c.ranks[merged] = noRank
		c.next[at] = after
		c.ranks[at] = noRank
		if int(after) < len(piece) {
			c.prev[after] = int32(at)
			c.offer(at, t.pairs.rank(c.ids[at], c.ids[after]))
		}
		if before := c.prev[at]; before >= 0 {
			c.offer(int(before), t.pairs.rank(c.ids[before], c.ids[at]))
		}
	}
	for i := int32(0); int(i) < len(piece); i = c.next[i] {
		dst = append(dst, c.ids[i])
	}
	return dst
}

func (c *chain) reset(n int) {
	if cap(c.ids) < n {
		*c = chain{ids: make([]int32, n), ranks: make([]uint32, n), next: make([]int32, n), prev: make([]int32, n),
			heap: make([]uint64, 0, n)}
	}
	c.ids, c.ranks, c.next, c.prev, c.heap = c.ids[:n], c.ranks[:n], c.next[:n], c.prev[:n], c.heap[:0]
	for i := range n {
		c.ranks[i], c.next[i], c.prev[i] = noRank, int32(i)+1, int32(i)-1
	}
}

// offer sets the rank of a token with the next token, and adds the pair to the heap if it can merge.
func (c *chain) offer(at int, rank uint32) {
	c.ranks[at] = rank
	if rank == noRank {
		return
	}
	c.heap = append(c.heap, uint64(rank)<<32|uint64(at))
	for i := len(c.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if c.heap[parent] <= c.heap[i] {
			return
		}
		c.heap[parent], c.heap[i] = c.heap[i], c.heap[parent]
		i = parent
	}
}

func (c *chain) pop() uint64 {
	least := c.heap[0]
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap = c.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return least
		}
		if child+1 < last && c.heap[child+1] < c.heap[child] {
			child++
		}
		if c.heap[i] <= c.heap[child] {
			return least
		}
		c.heap[i], c.heap[child] = c.heap[child], c.heap[i]
		i = child
	}
}
