// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// stuck finds a state from which no fault-free path leads to a done state.
func stuck(n int, from, to, done []uint32, cut map[uint32]bool) (uint32, bool) {
	head := make([]uint32, n+1)
	for _, t := range to {
		head[t+1]++
	}
	for i := 1; i <= n; i++ {
		head[i] += head[i-1]
	}
	pred := make([]uint32, len(to))
	pos := make([]uint32, n)
	copy(pos, head[:n])
	for i, t := range to {
		pred[pos[t]] = from[i]
		pos[t]++
	}
	good := make([]bool, n)
	queue := append([]uint32(nil), done...)
	for id := range cut {
		queue = append(queue, id)
	}
	for _, d := range queue {
		good[d] = true
	}
	for len(queue) > 0 {
		t := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range pred[head[t]:head[t+1]] {
			if !good[p] {
				good[p] = true
				queue = append(queue, p)
			}
		}
	}
	for i, g := range good {
		if !g {
			return uint32(i), true
		}
	}
	return 0, false
}

func trace[S any](m Model[S], st *store, id uint32) ([]string, string) {
	var path []uint32
	for id != 0 {
		path = append(path, id)
		id = st.parent[id]
	}
	cur := m.Init()
	var out []string
	for i := len(path) - 1; i >= 0; i-- {
		want := st.fps[path[i]]
		var nxt S
		var label string
		ok := false
		m.Next(&cur, func(a Act, _ bool, t *S) {
			if !ok && fingerprint(t) == want {
				ok, nxt = true, *t
				label = m.Label(a, &cur, t)
			}
		})
		if !ok {
			out = append(out, "(trace lost)")
			break
		}
		out = append(out, label)
		cur = nxt
	}
	return out, fmt.Sprintf("%+v", cur)
}
