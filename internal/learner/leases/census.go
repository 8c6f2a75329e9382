// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"maps"
	"slices"
	"time"
)

// census has the workers that are alive, and values derived from them. A run may have a thousand workers, and each
// sends a message every second. Most messages change nothing, and census then looks at no other worker.
type census struct {
	// outdated is set once a worker may have become alive, or its connection broke. Otherwise alive is valid from taken
	// to until, when the first of its workers may be lost.
	outdated     bool
	taken, until time.Time
	alive        []string
	// problems has the environments that no live worker can play, and why.
	problems      map[string]string
	problemsKnown bool
	// looked counts the workers that were looked at.
	looked int64
}

// alive lists the live workers, sorted. The caller must not change the list.
func (ws *workers) alive(now time.Time) []string {
	c := &ws.census
	if c.alive != nil && !c.outdated && !now.Before(c.taken) && !now.After(c.until) {
		return c.alive
	}
	names := []string{}
	until := now.Add(ws.silence)
	for _, name := range ws.names {
		w := ws.byName[name]
		c.looked++
		if w.live = ws.isLive(w, now); !w.live {
			continue
		}
		names = append(names, name)
		ends := w.seen.Add(ws.silence)
		if !w.disconnected.IsZero() && w.disconnected.Add(redial).Before(ends) {
			ends = w.disconnected.Add(redial)
		}
		if ends.Before(until) {
			until = ends
		}
	}
	c.outdated, c.taken, c.until, c.alive, c.problemsKnown = false, now, until, slices.Clip(names), false
	return c.alive
}

// commonProblems returns the environments that no live worker can play, and why. The caller must not change the map.
func (ws *workers) commonProblems(now time.Time) map[string]string {
	c, alive := &ws.census, ws.alive(now)
	if !c.problemsKnown {
		c.problems, c.problemsKnown = ws.findCommonProblems(alive), true
	}
	return c.problems
}

func (ws *workers) findCommonProblems(alive []string) map[string]string {
	var common map[string]string
	for _, name := range alive {
		ws.census.looked++
		problems := ws.byName[name].state.GetUnavailable()
		if common == nil {
			common = maps.Clone(problems)
		}
		maps.DeleteFunc(common, func(environment, _ string) bool {
			_, out := problems[environment]
			return !out
		})
		if len(common) == 0 {
			return nil
		}
	}
	return common
}
