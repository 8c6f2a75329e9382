// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// bodySizes records which sizes of bodies the server, or a proxy in front of it, has accepted and rejected.
type bodySizes struct {
	mu sync.Mutex
	// accepted is the size of the largest accepted body, and rejected the size of the smallest body that was rejected for
	// its size; 0 means that there was no such body.
	accepted, rejected int
}

// record records how a body was answered.
func (b *bodySizes) record(req request, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := len(req.body)
	switch {
	case err == nil:
		b.accepted = max(b.accepted, size)
		if b.rejected <= b.accepted {
			b.rejected = 0
		}
	case !isTooLarge(err):
	case size > b.accepted && (b.rejected == 0 || size < b.rejected):
		b.rejected = size
	case req.indivisible && size <= b.accepted:
		b.rejected = 0 // the server rejects the content, whatever its status says
	}
}

// check returns the error of a divisible request if the server is known to reject its size.
func (b *bodySizes) check(req request, err error) (request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && !req.indivisible && b.rejected > 0 && len(req.body) >= b.rejected {
		err = &Error{
			Category: tinker.CategoryTooLarge, Op: req.op,
			Err: fmt.Errorf("a body of %d bytes was rejected before", b.rejected),
		}
	}
	return req, err
}

// isAwaited reports whether a call waits until the server accepts the size of a body that cannot be divided. If a
// larger body was accepted before, the server rejects its content, and waiting does not help.
func (b *bodySizes) isAwaited(req request, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return req.indivisible && isTooLarge(err) && len(req.body) > b.accepted
}

// maxRejections limits how often a batch is sent again after a 413, which takes some seconds. A 413 that passes would
// otherwise divide the batch, whose gradients are then added in another order.
const maxRejections = 4

// isDoubted reports whether a body that can be divided is sent again after it was rejected a number of times in a
// row. A part of a batch is not sent again, because the rejection of the whole batch has lasted.
func isDoubted(req request, err error, rejections int) bool {
	return !req.indivisible && !req.part && !req.longPoll && isTooLarge(err) && rejections <= maxRejections
}

// isTooLarge reports whether the server rejected the size of a body and executed nothing.
func isTooLarge(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Category == tinker.CategoryTooLarge && !e.MayHaveRun &&
		(e.Status == 0 || e.Status == http.StatusRequestEntityTooLarge)
}
