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

// workers is the known state of a run's workers. Its owner's lock guards it.
type workers struct {
	// silence is the time for which a live worker may send nothing.
	silence time.Duration
	byName  map[string]*worker
	// names are the keys of byName, sorted. storing has the workers that store each group.
	names   []string
	storing map[rl.Key]map[*worker]bool
	census  census
	// expected are the workers of a former learner that have not said Hello.
	expected map[string]bool
}

// worker is the known state of one worker.
type worker struct {
	// storing is shared by all workers. live says whether the last census found the worker alive.
	storing map[rl.Key]map[*worker]bool
	live    bool

	seen time.Time
	// process is the process that said Hello; empty for a worker that does not count its spending.
	process string
	// disconnected is the time at which its connection broke, and zero while it is connected. A live worker dials again
	// soon.
	disconnected time.Time
	// stored and playing are the groups that it reported, submitted or was leased since.
	stored  map[rl.Key]rl.Outcome
	playing map[rl.Key]bool
	// granted are the leases that were sent to its process and that no message of the process has mentioned yet.
	granted map[rl.Key]granted
	// requested has, for each stored group that was requested, the time since which it is awaited.
	requested map[rl.Key]time.Time
	data      data
	// state is the state in its last renewal; nil before the first one.
	state *exchange.WorkerState
}

// granted is a lease that was sent to a worker, with the maximum cost of its group until the worker reports.
type granted struct {
	at   time.Time
	most int64
}

// redial is the time within which a worker whose connection broke has to come back: it tries after 0.1 s, and then
// every 2 s at the latest. A worker that comes later finds its leases with others.
const redial = 5 * time.Second

func newWorkers(silence time.Duration) workers {
	return workers{silence: silence, byName: map[string]*worker{}, storing: map[rl.Key]map[*worker]bool{}}
}

// get returns the worker's record. A worker that was not known yet counts as seen now.
func (ws *workers) get(name string, now time.Time) *worker {
	w := ws.byName[name]
	if w == nil {
		w = &worker{
			storing: ws.storing, seen: now,
			stored: map[rl.Key]rl.Outcome{}, playing: map[rl.Key]bool{}, requested: map[rl.Key]time.Time{},
			granted: map[rl.Key]granted{},
		}
		ws.byName[name] = w
		at, _ := slices.BinarySearch(ws.names, name)
		ws.names = slices.Insert(ws.names, at, name)
		ws.census.outdated = true
	}
	return w
}

// observe returns the worker's record and notes that it was seen now.
func (ws *workers) observe(name string, now time.Time) *worker {
	w := ws.get(name, now)
	w.seen = now
	if !w.live {
		ws.census.outdated = true
	}
	return w
}

// disconnect notes that a worker's connection broke. The connections of a killed process are closed, so its leases
// can be given to others before it has been silent for long.
func (ws *workers) disconnect(name string, now time.Time) {
	if w := ws.byName[name]; w != nil {
		w.disconnected = now
		ws.census.outdated = true
	}
}

func (ws *workers) isAlive(name string, now time.Time) bool {
	w := ws.byName[name]
	return w != nil && ws.isLive(w, now)
}

func (ws *workers) isLive(w *worker, now time.Time) bool {
	return now.Sub(w.seen) <= ws.silence && (w.disconnected.IsZero() || now.Sub(w.disconnected) <= redial)
}

// excuse treats the workers that were alive at time then as seen now, and their stored groups as requested now.
func (ws *workers) excuse(then, now time.Time) {
	for _, w := range ws.byName {
		if !ws.isLive(w, then) {
			continue
		}
		w.seen = now
		for key := range w.requested {
			w.requested[key] = now
		}
	}
	ws.census.outdated = true
}

// prune forgets the workers that have been silent for so long that they will not come back: pods are replaced under
// other names. A worker that does come back reports its groups.
func (ws *workers) prune(now time.Time) {
	const periods = 10
	for name, w := range ws.byName {
		if now.Sub(w.seen) <= periods*ws.silence {
			continue
		}
		for key := range w.stored {
			w.drop(key)
		}
		delete(ws.byName, name)
		ws.names = slices.DeleteFunc(ws.names, func(other string) bool { return other == name })
		ws.census.outdated = true
	}
}

// isStored reports whether a live worker stores the group.
func (ws *workers) isStored(key rl.Key, now time.Time) bool {
	for w := range ws.storing[key] {
		if ws.isLive(w, now) {
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
		for key := range w.stored {
			if key.Kind == rl.Train && key.Slot < index {
				w.drop(key)
			}
		}
	}
}

// hello takes over the groups that the worker reports.
func (w *worker) hello(request exchange.HelloRequest) {
	w.disconnected = time.Time{}
	for key := range w.stored {
		w.drop(key)
	}
	for _, group := range request.Stored {
		w.store(group.Key, group.Outcome)
	}
	w.play(request.Playing)
}

// store notes that the worker stores a group.
func (w *worker) store(key rl.Key, outcome rl.Outcome) {
	w.stored[key] = outcome
	if w.storing[key] == nil {
		w.storing[key] = map[*worker]bool{}
	}
	w.storing[key][w] = true
}

// drop notes that the worker does not store a group.
func (w *worker) drop(key rl.Key) {
	delete(w.stored, key)
	delete(w.storing[key], w)
	if len(w.storing[key]) == 0 {
		delete(w.storing, key)
	}
}

// renew takes over a worker's report.
func (ws *workers) renew(w *worker, renewal exchange.Renewal) {
	if !maps.Equal(w.state.GetUnavailable(), renewal.State.GetUnavailable()) {
		ws.census.problemsKnown = false
	}
	w.renew(renewal)
}

// renew takes over the groups that the worker plays, as its report lists them.
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

// request reports whether a group is to be requested from the worker, which is so if the worker stores the group. If
// the worker does not submit the group, it is leased again after a while.
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
		w.drop(key)
		return false
	}
	return true
}
