// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"errors"
	"slices"
)

// errLate says that an operation arrived after one with a higher number, which it should have preceded, was taken.
var errLate = errors.New("arriving after a later operation was carried out")

// queueItem is one operation with its place in the queue.
type queueItem[T any] struct {
	// seq is the number of the operation, starting at 1.
	seq int64
	// chunk says that the operation only adds to a sum, so that its order among its neighbours may change.
	chunk bool
	// value is the operation.
	value T
}

// opQueue puts the operations of one model in the order of their sequence numbers. The zero value is
// ready for number 1. It has no lock: its owner guards it.
//
// A client numbers its operations and sends each one after the response to those before it, with two
// exceptions. The chunks of one forward_backward may arrive in any order. And a chunk that was refused,
// or that the client could not encode, leaves a number that never arrives. So a chunk waits for its
// predecessors, while the arrival of any other operation shows that everything below it that will ever
// arrive has arrived. What remains is a chunk behind a gap with nothing after it: the owner calls skip
// after a while.
//
// The queue is pure: it uses no clock and no goroutines, and does not look into the operations. It does
// not recognise duplicates either; its owner adds each number once.
type opQueue[T any] struct {
	waiting  []queueItem[T] // sorted by seq
	highest  int64          // highest number that was taken
	barrier  int64          // highest number that was taken and was not a chunk
	released int64          // everything up to here may be taken, whether or not there are gaps
}

// add puts an operation in its place. It returns errLate when that place has passed.
func (q *opQueue[T]) add(item queueItem[T]) error {
	if item.seq <= q.barrier || (item.seq <= q.highest && !item.chunk) {
		return errLate
	}
	at, _ := slices.BinarySearchFunc(q.waiting, item.seq, func(i queueItem[T], seq int64) int { return cmp.Compare(i.seq, seq) })
	q.waiting = slices.Insert(q.waiting, at, item)
	if !item.chunk {
		q.released = max(q.released, item.seq)
	}
	return nil
}

// next takes the operation that is to be carried out next, if there is one that need not wait.
func (q *opQueue[T]) next() (queueItem[T], bool) {
	if len(q.waiting) == 0 || q.blocked() {
		return queueItem[T]{}, false
	}
	item := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.highest = max(q.highest, item.seq)
	if !item.chunk {
		q.barrier = item.seq
	}
	return item, true
}

// blocked reports whether operations wait for a number that did not arrive.
func (q *opQueue[T]) blocked() bool {
	return len(q.waiting) > 0 && q.waiting[0].seq > max(q.released, q.highest+1)
}

// skip stops waiting for all numbers that are missing below those in the queue.
func (q *opQueue[T]) skip() {
	if len(q.waiting) > 0 {
		q.released = max(q.released, q.waiting[len(q.waiting)-1].seq)
	}
}

// drain takes everything that waits.
func (q *opQueue[T]) drain() []queueItem[T] {
	items := q.waiting
	q.waiting = nil
	return items
}
