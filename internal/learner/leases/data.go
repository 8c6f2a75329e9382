// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// maxDownloads bounds the workers of a run that download data sets at once: a hub limits the requests of an address.
const maxDownloads = 4

// data is the known state of a worker's data sets.
type data struct {
	state exchange.DataState
	// permitted says that the worker may download.
	permitted bool
}

// renew takes over a worker's report. A worker that downloads has a permit from a learner, perhaps an earlier one.
func (d *data) renew(state *exchange.WorkerState) {
	d.state = state.GetDataState()
	switch d.state {
	case exchange.DataDownloading:
		d.permitted = true
	case exchange.DataSettled:
		d.permitted = false
	}
}

// lacksData has the codes with which workers report that they cannot read their data or their tokenizer.
var lacksData = map[problem.Code]bool{problem.DataBlocked: true, problem.TokenizerBlocked: true,
	problem.DataAuthorityUnknown: true}

// Problems returns the problems that live workers report of themselves and their episodes, one for each code, except
// problems of the endpoint. A problem with reading data is returned only if all live workers have one.
func (t *Table) Problems() []problem.Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	alive := t.workers.alive(t.now())
	withoutData := 0
	var data, others []problem.Problem
	for _, name := range alive {
		lacks := false
		for _, p := range t.workers.byName[name].state.GetProblems() {
			found := problem.Problem{Code: problem.Code(p.GetCode()), Evidence: p.GetEvidence()}
			known := func(other problem.Problem) bool { return other.Code == found.Code }
			switch {
			case lacksData[found.Code]:
				lacks = true
				data = []problem.Problem{found}
			case !slices.ContainsFunc(others, known):
				others = append(others, found)
			}
		}
		if lacks {
			withoutData++
		}
	}
	if withoutData < len(alive) {
		return others
	}
	return append(data, others...)
}

// Remarks describes for people why sampling is slow: groups that are played alone, and calls of environments that have
// not returned.
func (t *Table) Remarks() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var remarks []string
	if suspects := t.suspects.describe(); suspects != "" {
		remarks = append(remarks, suspects)
	}
	for _, name := range t.workers.alive(t.now()) {
		if calls := t.workers.byName[name].state.GetCallProblem(); calls != "" {
			remarks = append(remarks, "worker "+name+": "+calls)
		}
	}
	const most = 4
	return remarks[:min(most, len(remarks))]
}

// permitDownload reports whether a worker may download. A worker keeps the permit until it no longer needs it.
func (ws *workers) permitDownload(w *worker, now time.Time) bool {
	if w.data.permitted || w.data.state != exchange.DataWaiting {
		return w.data.permitted
	}
	permitted := 0
	for name, other := range ws.byName {
		if other.data.permitted && ws.isAlive(name, now) {
			permitted++
		}
	}
	w.data.permitted = permitted < maxDownloads
	return w.data.permitted
}
