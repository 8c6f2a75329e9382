// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package future keeps the results of asynchronous requests until their clients have fetched them.
//
// A request is answered with the id of a promise. The promise is resolved once, with a result
// that its package does not look into, or lost. A result stays for a while after it was last
// fetched, because the answer that carried it may not have arrived. Ids start with a prefix
// that the caller makes unique to the process, so an id of an earlier process is unknown here
// and never somebody else's.
package future

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Errors of Lookup.
var (
	// ErrUnknown says that this table never gave out that id.
	ErrUnknown = errors.New("looking up a promise that was never made here")
	// ErrLost says that the promise was made here and its result is gone for good.
	ErrLost = errors.New("looking up a promise that was lost")
)

// Kind names the type of a result.
type Kind string

// Result is what a promise is resolved with. The table does not interpret it.
type Result struct {
	Kind Kind
	Body []byte
}

// QueueStatus is what a client that asks too early is told.
type QueueStatus struct {
	// State is the queue state of the API.
	State string
	// Reason is a sentence for people; it may be empty.
	Reason string
}

// Retention says how long results are kept.
type Retention struct {
	// Delivered counts from the last time that a result was fetched.
	Delivered time.Duration
	// Undelivered counts from when a result was there that nobody has fetched.
	Undelivered time.Duration
}

// Table holds the promises of one process. It is safe for concurrent use.
type Table struct {
	prefix    string
	retention Retention
	now       func() time.Time

	mu       sync.Mutex
	issued   int64
	futures  map[string]*Future
	resolved *list.List // of *Promise, the one to look at first in front
}

// NewTable returns an empty table whose ids start with the prefix.
func NewTable(prefix string, keep Retention, now func() time.Time) *Table {
	return &Table{prefix: prefix, retention: keep, now: now, futures: map[string]*Future{}, resolved: list.New()}
}

// New makes a promise.
func (t *Table) New() *Future {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	t.issued++
	p := &Future{
		id:     fmt.Sprintf("%s-%d", t.prefix, t.issued),
		table:  t,
		done:   make(chan struct{}),
		status: QueueStatus{State: Active},
	}
	t.futures[p.id] = p
	return p
}

// Lookup returns the promise of that id, ErrUnknown or ErrLost.
func (t *Table) Lookup(id string) (*Future, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	if p, ok := t.futures[id]; ok {
		return p, nil
	}
	number, ok := strings.CutPrefix(id, t.prefix+"-")
	if !ok {
		return nil, ErrUnknown
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > t.issued {
		return nil, ErrUnknown
	}
	return nil, ErrLost
}

// Len returns how many promises the table holds.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.futures)
}

// sweep forgets results whose time is over. It looks only at the front of the list: each promise
// comes back to the end with its new time while it is still being fetched.
func (t *Table) sweep() {
	now := t.now()
	for front := t.resolved.Front(); front != nil; front = t.resolved.Front() {
		p := front.Value.(*Future)
		if now.Before(p.checkAt) {
			return
		}
		if expiry := p.expiry(t.retention); now.Before(expiry) {
			p.checkAt = now.Add(t.retention.Delivered)
			t.resolved.MoveToBack(front)
			continue
		}
		t.resolved.Remove(front)
		delete(t.futures, p.id)
	}
}

// Active is the queue state of a promise that nothing holds up.
const Active = "active"

// Future is the result of one request, now or later. It is safe for concurrent use.
type Future struct {
	id    string
	table *Table
	done  chan struct{}

	// All of these are guarded by the table's mutex.
	result    Result
	settled   bool
	settledAt time.Time
	fetchedAt time.Time
	checkAt   time.Time
	status    QueueStatus
}

// ID returns the request id.
func (p *Future) ID() string { return p.id }

// Done is closed when the promise is resolved or lost.
func (p *Future) Done() <-chan struct{} { return p.done }

// Resolve sets the result. Only the first call counts.
func (p *Future) Resolve(result Result) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	if p.settled {
		return
	}
	p.settled, p.result, p.settledAt = true, result, p.table.now()
	p.checkAt = p.settledAt.Add(p.table.retention.Delivered)
	p.table.resolved.PushBack(p)
	close(p.done)
}

// Lose forgets the promise: whoever asks for it from now on is told ErrLost.
func (p *Future) Lose() {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	delete(p.table.futures, p.id)
	if !p.settled {
		p.settled = true
		close(p.done)
	}
}

// SetQueueStatus changes what early askers are told.
func (p *Future) SetQueueStatus(pause QueueStatus) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	p.status = pause
}

// Wait returns the result if it is there or comes within the time given. Otherwise ok is false
// and the pause says why. It returns ErrLost for a promise that was lost, and the context's error.
func (p *Future) Wait(ctx context.Context, patience time.Duration) (result Result, pause QueueStatus, ok bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	case <-ctx.Done():
		return Result{}, QueueStatus{}, false, ctx.Err()
	}
	return p.peek()
}

func (p *Future) peek() (Result, QueueStatus, bool, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	if _, kept := p.table.futures[p.id]; !kept {
		return Result{}, QueueStatus{}, false, ErrLost
	}
	if !p.settled {
		return Result{}, p.status, false, nil
	}
	p.fetchedAt = p.table.now()
	return p.result, QueueStatus{}, true, nil
}

// expiry returns when the result may be forgotten.
func (p *Future) expiry(keep Retention) time.Time {
	if p.fetchedAt.IsZero() {
		return p.settledAt.Add(keep.Undelivered)
	}
	return p.fetchedAt.Add(keep.Delivered)
}
