// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package engine

// graph has the transitions without faults between the states that were found.
type graph struct {
	from, to []uint32
	done     []uint32
	// broken are the states that break an invariant; their successors are not known.
	broken map[uint32]bool
}

func (g *graph) edge(from, to uint32) {
	g.from = append(g.from, from)
	g.to = append(g.to, to)
}

// stuck returns the first state, of n, from which no path without faults leads to a state that is done or broken. It
// returns false if there is none.
func (g *graph) stuck(n int) (uint32, bool) {
	head, before := g.predecessors(n)
	good := make([]bool, n)
	queue := append([]uint32(nil), g.done...)
	for id := range g.broken {
		queue = append(queue, id)
	}
	for _, id := range queue {
		good[id] = true
	}
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range before[head[id]:head[id+1]] {
			if !good[p] {
				good[p] = true
				queue = append(queue, p)
			}
		}
	}
	for id, ok := range good {
		if !ok {
			return uint32(id), true
		}
	}
	return 0, false
}

// predecessors returns the states that lead to each of n states: the predecessors of state i are
// before[head[i]:head[i+1]].
func (g *graph) predecessors(n int) (head, before []uint32) {
	head = make([]uint32, n+1)
	for _, to := range g.to {
		head[to+1]++
	}
	for i := 1; i <= n; i++ {
		head[i] += head[i-1]
	}
	before = make([]uint32, len(g.to))
	next := append([]uint32(nil), head[:n]...)
	for i, to := range g.to {
		before[next[to]] = g.from[i]
		next[to]++
	}
	return head, before
}
