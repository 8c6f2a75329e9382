// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
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

// renew takes over what a worker reports. A worker that downloads had its permit from a learner, perhaps an earlier one.
func (d *data) renew(renewal exchange.Renewal) {
	d.state, d.problem = renewal.Data, renewal.DataProblem
	switch d.state {
	case exchange.DataDownloading:
		d.permitted = true
	case exchange.DataSettled:
		d.permitted = false
	}
}

// JudgeProblem returns why a live worker cannot ask a judge. It is empty if all of them can.
func (t *Table) JudgeProblem() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.workers.alive(t.config.Now()) {
		if problem := t.workers.byName[name].judgeProblem; problem != "" {
			return problem
		}
	}
	return ""
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
