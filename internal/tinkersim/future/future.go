// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package future keeps the results of asynchronous requests until their clients have fetched them.
//
// The response to such a request carries the id of a future. The future is resolved once, with a result
// that this package does not interpret, or it is lost. A result is kept for a while after it was last
// fetched, because the response that carried it may not have arrived. Ids start with a prefix that
// the caller makes unique to the process, so an id of an earlier process is unknown to later ones.
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

// Errors of Lookup and Cancel.
var (
	// ErrUnknown says that this table never issued that id.
	ErrUnknown = errors.New("looking up a future: this server never issued its id")
	// ErrLost says that this table issued the id, and that the result no longer exists.
	ErrLost = errors.New("looking up a future: its result is lost")
	// ErrNotCancelable says that the work of a future cannot be stopped.
	ErrNotCancelable = errors.New("canceling a future: only requests for samples can be canceled")
)

// Kind names the type of a result.
type Kind string

// Result is the value of a resolved future. The table does not interpret it.
type Result struct {
	Kind Kind
	Body []byte
}

// QueueStatus says why there is no result yet.
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
	// Undelivered counts from the time of the resolution if the result was never fetched.
	Undelivered time.Duration
}

// Table holds the futures of one process. It is safe for concurrent use.
type Table struct {
	prefix    string
	retention Retention
	now       func() time.Time

	mu       sync.Mutex
	issued   int64
	futures  map[string]*Future
	resolved *list.List // of *Future, sorted by checkAt
}

// NewTable returns an empty table whose ids start with the prefix.
func NewTable(prefix string, keep Retention, now func() time.Time) *Table {
	return &Table{prefix: prefix, retention: keep, now: now, futures: map[string]*Future{}, resolved: list.New()}
}

// New creates a future.
func (t *Table) New() *Future {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	t.issued++
	f := &Future{
		id:     fmt.Sprintf("%s-%d", t.prefix, t.issued),
		table:  t,
		done:   make(chan struct{}),
		status: QueueStatus{State: Active},
	}
	t.futures[f.id] = f
	return f
}

// Lookup returns the future with that id, ErrUnknown or ErrLost.
func (t *Table) Lookup(id string) (*Future, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	if f, ok := t.futures[id]; ok {
		return f, nil
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

// Cancel loses the future with that id if there is no result yet, so that the work for it stops. It returns
// ErrUnknown, or ErrNotCancelable for a future that does not allow it.
func (t *Table) Cancel(id string) error {
	f, err := t.Lookup(id)
	switch {
	case errors.Is(err, ErrLost):
		return nil
	case err != nil:
		return err
	case !f.mayCancel():
		return ErrNotCancelable
	}
	f.Abandon()
	return nil
}

// Clear removes all futures, so that their results take no memory. Lookup returns ErrLost for them from now on.
func (t *Table) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.futures)
	t.resolved.Init()
}

// Sweep removes expired results.
func (t *Table) Sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
}

// Len returns how many futures the table holds.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.futures)
}

// sweep removes expired results. It looks only at the front of the list: a result that was fetched
// since moves to the end with a new time.
func (t *Table) sweep() {
	now := t.now()
	for front := t.resolved.Front(); front != nil; front = t.resolved.Front() {
		f := front.Value.(*Future)
		if now.Before(f.checkAt) {
			return
		}
		if expiry := f.expiry(t.retention); now.Before(expiry) {
			f.checkAt = now.Add(t.retention.Delivered)
			t.resolved.MoveToBack(front)
			continue
		}
		t.resolved.Remove(front)
		delete(t.futures, f.id)
	}
}

// Active is the queue state of a future that nothing delays.
const Active = "active"

// Future is the result of one request, which may not exist yet. It is safe for concurrent use.
type Future struct {
	id    string
	table *Table
	done  chan struct{}

	// The table's mutex guards the fields below.
	result    Result
	settled   bool
	settledAt time.Time
	fetchedAt time.Time
	checkAt   time.Time
	status    QueueStatus
	canCancel bool
}

// ID returns the request id.
func (f *Future) ID() string { return f.id }

// Done returns a channel that is closed when the future is resolved or lost. Work that only serves the result can stop
// when it is closed.
func (f *Future) Done() <-chan struct{} { return f.done }

// Resolve sets the result. Later calls have no effect.
func (f *Future) Resolve(result Result) {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	if f.settled {
		return
	}
	f.settled, f.result, f.settledAt = true, result, f.table.now()
	f.checkAt = f.settledAt.Add(f.table.retention.Delivered)
	f.table.resolved.PushBack(f)
	close(f.done)
}

// Lose removes the future from the table: Lookup returns ErrLost from now on.
func (f *Future) Lose() {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	delete(f.table.futures, f.id)
	if !f.settled {
		f.settled = true
		close(f.done)
	}
}

// Abandon loses the future if there is no result yet.
func (f *Future) Abandon() {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	if f.settled {
		return
	}
	delete(f.table.futures, f.id)
	f.settled = true
	close(f.done)
}

// AllowCancel allows Table.Cancel for the future.
func (f *Future) AllowCancel() {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	f.canCancel = true
}

func (f *Future) mayCancel() bool {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	return f.canCancel
}

// SetQueueStatus sets the status that Wait returns while there is no result.
func (f *Future) SetQueueStatus(status QueueStatus) {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	f.status = status
}

// Wait returns the result if it exists or arrives within the given time. Otherwise ok is false and
// status says why. It returns ErrLost for a future that was lost, and the context's error.
func (f *Future) Wait(ctx context.Context, patience time.Duration) (result Result, status QueueStatus, ok bool,
	err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
	case <-ctx.Done():
		return Result{}, QueueStatus{}, false, ctx.Err()
	}
	return f.peek()
}

func (f *Future) peek() (Result, QueueStatus, bool, error) {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	if _, kept := f.table.futures[f.id]; !kept {
		return Result{}, QueueStatus{}, false, ErrLost
	}
	if !f.settled {
		return Result{}, f.status, false, nil
	}
	f.fetchedAt = f.table.now()
	return f.result, QueueStatus{}, true, nil
}

// expiry returns the time from which the result may be removed.
func (f *Future) expiry(keep Retention) time.Time {
	if f.fetchedAt.IsZero() {
		return f.settledAt.Add(keep.Undelivered)
	}
	return f.fetchedAt.Add(keep.Delivered)
}
