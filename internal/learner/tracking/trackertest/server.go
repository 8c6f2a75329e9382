// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package trackertest has the common part of servers for tests of trackers: they record requests and inject the faults
// that a test asks for.
package trackertest

import (
	"net/http/httptest"
	"slices"
	"sync"
)

// Server records requests of type R. A fault is chosen by the operation of a request, of type A.
type Server[R, A any] struct {
	*httptest.Server
	// Mutex is held while a request is answered.
	sync.Mutex

	requests []R
	fault    func(A) Fault
}

// Fault is a fault of a server at a request.
type Fault int

// The faults.
const (
	None Fault = iota
	// Refuse answers 503 and does nothing.
	Refuse
	// Reject answers 400 and does nothing.
	Reject
	// LoseAnswer does the operation, and breaks the connection.
	LoseAnswer
	// LosePart does half of the operation, and breaks the connection.
	LosePart
)

// SetFault sets the function that chooses a fault for each later request; nil means that there are no faults. fault
// is called with the lock held.
func (s *Server[R, A]) SetFault(fault func(A) Fault) {
	s.Lock()
	defer s.Unlock()
	s.fault = fault
}

// Fault returns the fault for a request. The lock is held.
func (s *Server[R, A]) Fault(asked A) Fault {
	if s.fault == nil {
		return None
	}
	return s.fault(asked)
}

// Record adds a request. The lock is held.
func (s *Server[R, A]) Record(r R) { s.requests = append(s.requests, r) }

// Requests returns the requests in their order.
func (s *Server[R, A]) Requests() []R {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.requests)
}
