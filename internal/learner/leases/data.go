// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// maxDownloads bounds the workers of a run that download data sets at once: a hub limits the requests of an address.
const maxDownloads = 4

// data is what is known of a worker's data sets.
type data struct {
	state   exchange.DataState
	problem string
	// permitted says that the worker may download.
	permitted bool
}

// renew takes over what a worker reports. A worker that downloads had its permit from a learner, perhaps an earlier
// one.
func (d *data) renew(state *exchange.WorkerState) {
	d.state, d.problem = state.GetDataState(), state.GetDataProblem()
	switch d.state {
	case exchange.DataDownloading:
		d.permitted = true
	case exchange.DataSettled:
		d.permitted = false
	}
}

// EpisodeProblems returns why episodes at a live worker wait: since it cannot ask a judge, or since the model's format
// cannot express a prompt. They are empty if none waits for that.
func (t *Table) EpisodeProblems() (judge, format string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.workers.alive(t.config.Now()) {
		state := t.workers.byName[name].state
		judge, format = cmp.Or(judge, state.GetJudgeProblem()), cmp.Or(format, state.GetFormatProblem())
	}
	return judge, format
}

// Remarks describe for people what makes sampling slow: groups that are played alone, and calls of environments that
// have not returned.
func (t *Table) Remarks() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var remarks []string
	if suspects := t.suspects.describe(); suspects != "" {
		remarks = append(remarks, suspects)
	}
	for _, name := range t.workers.alive(t.config.Now()) {
		if problem := t.workers.byName[name].state.GetCallProblem(); problem != "" {
			remarks = append(remarks, "worker "+name+": "+problem)
		}
	}
	const most = 4
	return remarks[:min(most, len(remarks))]
}

// permitDownload reports whether a worker may download. Those that may keep the permit until they need it no more.
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

// DataProblem returns what is wrong with the data of the live workers, if none of them can read it; otherwise it is
// empty.
func (t *Table) DataProblem() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	problem := ""
	for _, name := range t.workers.alive(t.config.Now()) {
		if problem = t.workers.byName[name].data.problem; problem == "" {
			return ""
		}
	}
	return problem
}
