// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// workers is what is known of the workers of a run. Its owner's lock guards it.
type workers struct {
	// silence is how long a live worker may send nothing.
	silence time.Duration
	byName  map[string]*worker
	// expected are the workers of a former learner that have not said Hello.
	expected map[string]bool
}

// worker is what is known of one worker.
type worker struct {
	seen time.Time
	// process is the one that said Hello; empty for a worker that does not count what it spends.
	process string
	// disconnected is when its connection broke, and zero while it is connected. A live worker dials again
	// soon.
	disconnected time.Time
	// stored and playing are what it reported to have, and what it submitted or was leased since.
	stored  map[rl.Key]rl.Outcome
	playing map[rl.Key]bool
	// reported are the keys of its last renewal.
	reported map[rl.Key]bool
	// requested is since when a stored group is awaited.
	requested map[rl.Key]time.Time
	data      data
	// state is that of its last renewal; nil before the first one.
	state *exchange.WorkerState
}

// redial is how long a worker whose connection broke has to come back: it tries after 0.1 s, and then every
// 2 s at the latest. A worker that comes later finds its leases with others.
const redial = 5 * time.Second

func newWorkers(silence time.Duration) workers {
	return workers{silence: silence, byName: map[string]*worker{}}
}

// get gives the worker's record. A worker that was not known yet counts as seen now.
func (ws *workers) get(name string, now time.Time) *worker {
	w := ws.byName[name]
	if w == nil {
		w = &worker{
			seen: now, stored: map[rl.Key]rl.Outcome{}, playing: map[rl.Key]bool{}, requested: map[rl.Key]time.Time{},
		}
		ws.byName[name] = w
	}
	return w
}

// observe gives the worker's record and notes that it was seen now.
func (ws *workers) observe(name string, now time.Time) *worker {
	w := ws.get(name, now)
	w.seen = now
	return w
}

// disconnect notes that a worker's connection broke. A process that was killed closes its connections, so
// that its leases need not wait until it has been silent for long.
func (ws *workers) disconnect(name string, now time.Time) {
	if w := ws.byName[name]; w != nil {
		w.disconnected = now
	}
}

func (ws *workers) isAlive(name string, now time.Time) bool {
	w := ws.byName[name]
	if w == nil || now.Sub(w.seen) > ws.silence {
		return false
	}
	return w.disconnected.IsZero() || now.Sub(w.disconnected) <= redial
}

// prune forgets the workers that have been silent for so long that they will not come back: pods are replaced under
// other names. One that does come back reports what it has.
func (ws *workers) prune(now time.Time) {
	const periods = 10
	maps.DeleteFunc(ws.byName, func(_ string, w *worker) bool { return now.Sub(w.seen) > periods*ws.silence })
}

// alive lists the live workers, sorted.
func (ws *workers) alive(now time.Time) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(ws.byName)) {
		if ws.isAlive(name, now) {
			names = append(names, name)
		}
	}
	return names
}

// isStored reports whether a live worker stores the group.
func (ws *workers) isStored(key rl.Key, now time.Time) bool {
	for name, w := range ws.byName {
		if _, ok := w.stored[key]; ok && ws.isAlive(name, now) {
			return true
		}
	}
	return false
}

func (ws *workers) expect(names []string) {
	ws.expected = map[string]bool{}
	for _, name := range names {
		ws.expected[name] = true
	}
}

// arrived notes that a worker has said Hello and reports whether it was the last one expected.
func (ws *workers) arrived(name string) (complete bool) {
	if !ws.expected[name] {
		return false
	}
	delete(ws.expected, name)
	return len(ws.expected) == 0
}

// cover forgets that training groups of slots below the index are stored.
func (ws *workers) cover(index int64) {
	for _, w := range ws.byName {
		maps.DeleteFunc(w.stored, func(key rl.Key, _ rl.Outcome) bool { return key.Kind == rl.Train && key.Slot < index })
	}
}

// hello takes over what the worker reports to have.
func (w *worker) hello(request exchange.HelloRequest) {
	w.disconnected = time.Time{}
	clear(w.stored)
	for _, group := range request.Stored {
		w.stored[group.Key] = group.Outcome
	}
	w.play(request.Playing)
}

// renew takes over what the worker reports to play.
func (w *worker) renew(renewal exchange.Renewal) {
	w.disconnected = time.Time{}
	keys := make([]rl.Key, 0, len(renewal.Progress))
	for _, progress := range renewal.Progress {
		keys = append(keys, progress.Key)
	}
	w.play(keys)
	w.state = renewal.State
	w.data.renew(renewal.State)
}

func (w *worker) play(keys []rl.Key) {
	clear(w.playing)
	for _, key := range keys {
		w.playing[key] = true
	}
}

// request reports whether a group is to be requested from the worker: whether it stores it. If the worker does not
// submit the group, it is leased again after a while.
func (w *worker) request(key rl.Key, now time.Time) bool {
	const patience = time.Minute
	if _, stored := w.stored[key]; !stored {
		return false
	}
	since, requested := w.requested[key]
	switch {
	case !requested:
		w.requested[key] = now
	case now.Sub(since) > patience:
		delete(w.stored, key)
		return false
	}
	return true
}
