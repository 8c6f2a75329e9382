// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package opqueue puts the operations of one model in the order of their sequence numbers.
package opqueue

import (
	"cmp"
	"errors"
	"slices"
)

// ErrLate says that an operation arrived after one with a higher number, which it should have preceded, was taken.
var ErrLate = errors.New("arriving after a later operation was carried out")

// Item is one operation with its place in the queue.
type Item[T any] struct {
	// Seq is the number of the operation, starting at 1.
	Seq int64
	// Chunk says that the operation only adds to a sum, so that its order among its neighbours may change.
	Chunk bool
	// Value is the operation.
	Value T
}

// Queue puts the operations of one model in the order of their sequence numbers. The zero value is
// ready for number 1. It has no lock: its owner guards it.
//
// A client numbers its operations and sends each one after the response to those before it, with two exceptions. The
// chunks of one forward_backward may arrive in any order. And a chunk that was refused, or that the client could not
// encode, leaves a number that never arrives. So a chunk waits for its predecessors, while the arrival of any other
// operation shows that everything below it that will ever arrive has arrived. One case remains, a chunk behind a gap
// with nothing after it: the owner calls Skip after a while.
//
// The queue is pure: it uses no clock and no goroutines, and does not look into the operations. It does
// not recognise duplicates either; its owner adds each number once.
type Queue[T any] struct {
	waiting  []Item[T] // sorted by Seq
	highest  int64     // highest number that was taken
	barrier  int64     // highest number that was taken and was not a chunk
	released int64     // everything up to here may be taken, whether or not there are gaps
}

// Add puts an operation in its place. It returns ErrLate when that place has passed.
func (q *Queue[T]) Add(item Item[T]) error {
	if item.Seq <= q.barrier || (item.Seq <= q.highest && !item.Chunk) {
		return ErrLate
	}
	at, _ := slices.BinarySearchFunc(q.waiting, item.Seq,
		func(i Item[T], seq int64) int { return cmp.Compare(i.Seq, seq) })
	q.waiting = slices.Insert(q.waiting, at, item)
	if !item.Chunk {
		q.released = max(q.released, item.Seq)
	}
	return nil
}

// Next takes the operation that is to be carried out next, if there is one that need not wait.
func (q *Queue[T]) Next() (Item[T], bool) {
	if len(q.waiting) == 0 || q.Blocked() {
		return Item[T]{}, false
	}
	item := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.highest = max(q.highest, item.Seq)
	if !item.Chunk {
		q.barrier = item.Seq
	}
	return item, true
}

// Barrier returns the highest number that was taken and was not a chunk. Nothing at or below it can be added.
func (q *Queue[T]) Barrier() int64 { return q.barrier }

// Blocked reports whether operations wait for a number that did not arrive.
func (q *Queue[T]) Blocked() bool {
	return len(q.waiting) > 0 && q.waiting[0].Seq > max(q.released, q.highest+1)
}

// Skip stops waiting for all missing numbers below the numbers in the queue.
func (q *Queue[T]) Skip() {
	if len(q.waiting) > 0 {
		q.released = max(q.released, q.waiting[len(q.waiting)-1].Seq)
	}
}

// Drain takes everything that waits.
func (q *Queue[T]) Drain() []Item[T] {
	items := q.waiting
	q.waiting = nil
	return items
}
