// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"container/heap"
	"math"
	"sync"
)

// noRank is the rank of a pair that is not merged.
const noRank = math.MaxUint32

// word is a piece while it is merged. Tokens are linked by the index of their first character.
type word struct {
	ids        []int32
	ranks      []uint32
	into       []int32
	next, prev []int32
	queue      queue
}

var words = sync.Pool{New: func() any { return new(word) }}

// few is the number of tokens up to which merge searches all pairs for the next one.
const few = 48

// merge appends the merged tokens of the word. It merges neighbours of the lowest rank first, and among equal ranks
// the leftmost ones.
func (w *word) merge(dst []int32, pairs map[uint64]ranked) []int32 {
	n := len(w.ids)
	if n < 2 {
		return append(dst, w.ids...)
	}
	w.reset(n)
	for i := range n - 1 {
		w.rank(i, pairs)
	}
	if n <= few {
		return w.mergeFew(dst, pairs)
	}
	for i, rank := range w.ranks[:n] {
		if rank != noRank {
			w.queue = append(w.queue, entry{rank: rank, at: int32(i)})
		}
	}
	heap.Init(&w.queue)
	for len(w.queue) > 0 {
		least := heap.Pop(&w.queue).(entry)
		if w.ranks[least.at] != least.rank {
			continue // One of the two has been merged with another token since.
		}
		for _, at := range w.join(int(least.at), pairs) {
			if at >= 0 && w.ranks[at] != noRank {
				heap.Push(&w.queue, entry{rank: w.ranks[at], at: at})
			}
		}
	}
	return w.collect(dst)
}

// mergeFew does the same for short words.
func (w *word) mergeFew(dst []int32, pairs map[uint64]ranked) []int32 {
	for {
		best, at := uint32(noRank), int32(0)
		for i := int32(0); int(i) < len(w.ids); i = w.next[i] {
			if w.ranks[i] < best {
				best, at = w.ranks[i], i
			}
		}
		if best == noRank {
			return w.collect(dst)
		}
		w.join(int(at), pairs)
	}
}

func (w *word) reset(n int) {
	if cap(w.ranks) < n {
		w.ranks, w.into, w.next, w.prev = make([]uint32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	}
	w.ranks, w.into, w.next, w.prev, w.queue = w.ranks[:n], w.into[:n], w.next[:n], w.prev[:n], w.queue[:0]
	for i := range n {
		w.ranks[i], w.next[i], w.prev[i] = noRank, int32(i)+1, int32(i)-1
	}
}

// rank sets the rank of a token with the next one.
func (w *word) rank(at int, pairs map[uint64]ranked) {
	w.ranks[at] = noRank
	if next := w.next[at]; int(next) < len(w.ids) {
		if found, ok := pairs[pairOf(w.ids[at], w.ids[next])]; ok {
			w.ranks[at], w.into[at] = found.rank, found.into
		}
	}
}

// join merges a token with the next one, and returns the tokens whose ranks are new. One of them may be -1.
func (w *word) join(at int, pairs map[uint64]ranked) [2]int32 {
	merged := w.next[at]
	after := w.next[merged]
	w.ids[at], w.ranks[merged], w.next[at] = w.into[at], noRank, after
	if int(after) < len(w.ids) {
		w.prev[after] = int32(at)
	}
	w.rank(at, pairs)
	before := w.prev[at]
	if before >= 0 {
		w.rank(int(before), pairs)
	}
	return [2]int32{before, int32(at)}
}

func (w *word) collect(dst []int32) []int32 {
	for i := int32(0); int(i) < len(w.ids); i = w.next[i] {
		dst = append(dst, w.ids[i])
	}
	return dst
}

// entry is a pair that may be merged.
type entry struct {
	rank uint32
	at   int32
}

// queue has the pair of the lowest rank first, and among equal ranks the leftmost.
type queue []entry

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(entry)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
