// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package order puts the operations of one model in the order of their sequence numbers.
//
// A client numbers its operations and sends one after the answer to those before it, with two
// exceptions. The chunks of one forward_backward may arrive in any order. And a chunk that was
// refused, or that the client could not encode, leaves a number that never comes. So a chunk
// waits for its predecessors, while the arrival of any other operation says that everything
// below it that will ever come has come. What is left is a chunk behind a gap with nothing
// after it: the caller gives the gap up after a while.
//
// The package is pure: it knows no clock, no goroutines and not what an operation is. It does
// not recognise duplicates either; its caller adds each number once.
package order

import (
	"cmp"
	"errors"
	"slices"
)

// ErrLate says that an operation of a higher number, which its effect would have to precede, was already given out.
var ErrLate = errors.New("arriving after a later operation was carried out")

// Item is one operation with its place.
type Item[T any] struct {
	// Seq is the number of the operation, from 1.
	Seq int64
	// Chunk says that it only adds to a sum, so that its order among its neighbours may change.
	Chunk bool
	// Value is the operation.
	Value T
}

// Queue holds the operations of one model that were not given out yet. The zero value is ready for number 1.
type Queue[T any] struct {
	waiting []Item[T] // sorted by Seq
	done    int64     // highest number given out
	barrier int64     // highest number given out that was no chunk
	open    int64     // everything up to here may go, gaps or not
}

// Add puts an operation in its place. It returns ErrLate when that place has passed.
func (q *Queue[T]) Add(item Item[T]) error {
	if item.Seq <= q.barrier || (item.Seq <= q.done && !item.Chunk) {
		return ErrLate
	}
	at, _ := slices.BinarySearchFunc(q.waiting, item.Seq, func(i Item[T], seq int64) int { return cmp.Compare(i.Seq, seq) })
	q.waiting = slices.Insert(q.waiting, at, item)
	if !item.Chunk {
		q.open = max(q.open, item.Seq)
	}
	return nil
}

// Next takes out the operation that is to be carried out next, if there is one that need not wait.
func (q *Queue[T]) Next() (Item[T], bool) {
	if len(q.waiting) == 0 || q.waiting[0].Seq > max(q.open, q.done+1) {
		return Item[T]{}, false
	}
	item := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.done = max(q.done, item.Seq)
	if !item.Chunk {
		q.barrier = item.Seq
	}
	return item, true
}

// Blocked says whether operations wait for a number that did not arrive.
func (q *Queue[T]) Blocked() bool {
	return len(q.waiting) > 0 && q.waiting[0].Seq > max(q.open, q.done+1)
}

// Skip gives up all numbers that are missing below those that wait.
func (q *Queue[T]) Skip() {
	if len(q.waiting) > 0 {
		q.open = max(q.open, q.waiting[len(q.waiting)-1].Seq)
	}
}

// Drain takes out everything that waits.
func (q *Queue[T]) Drain() []Item[T] {
	items := q.waiting
	q.waiting = nil
	return items
}
