// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog makes the manager's liveness fail when a reconcile does not return. A controller reconciles few
// objects at once: a reconcile that hangs slows all namespaces, and the manager still renews its lease.
package watchdog

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Limit is the maximum time of a reconcile. A reconcile only reads and writes a few objects, and calls of the API
// server end long before.
const Limit = 10 * time.Minute

// Watchdog knows which reconciles are in flight. New makes one. Its methods are safe for concurrent use.
type Watchdog struct {
	now func() time.Time

	mu       sync.Mutex
	next     int64
	inFlight map[int64]reconciling
}

// reconciling is a reconcile in flight.
type reconciling struct {
	controller string
	request    reconcile.Request
	since      time.Time
}

// New returns a Watchdog. now is its clock.
func New(now func() time.Time) *Watchdog {
	return &Watchdog{now: now, inFlight: map[int64]reconciling{}}
}

// Watch returns a Reconciler that calls another one and watches its calls.
func (w *Watchdog) Watch(controller string, r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		defer w.begin(reconciling{controller, request, w.now()})()
		return r.Reconcile(ctx, request)
	})
}

// begin notes a reconcile, and returns the function that ends it.
func (w *Watchdog) begin(r reconciling) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	id := w.next
	w.inFlight[id] = r
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.inFlight, id)
	}
}

// Check fails while a reconcile has been in flight for longer than Limit. It is a health check of the manager.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.inFlight {
		if lasted := w.now().Sub(r.since); lasted > Limit {
			return fmt.Errorf("the reconcile of %s %s has not returned for %s", r.controller, r.request,
				lasted.Round(time.Second))
		}
	}
	return nil
}
