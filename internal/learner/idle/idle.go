// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package idle serves HTTP to a person until requests cease.
package idle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Patience is the time without a request after which a server of a pod ends, since its user is gone.
const Patience = 2 * time.Minute

// Serve answers requests at a listener until no request was in progress for the time after, or until ctx ends.
func Serve(ctx context.Context, handler http.Handler, listener net.Listener, after time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alone := newWatch(after, cancel)
	defer alone.timer.Stop()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			alone.add(1)
			defer alone.add(-1)
			handler.ServeHTTP(w, r)
		})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		return errors.Join(server.Close(), ignoreClosed(<-ended))
	}
}

// watch calls a function once no request was in progress for a time.
type watch struct {
	after time.Duration
	timer *time.Timer

	mu         sync.Mutex
	inProgress int
}

func newWatch(after time.Duration, end func()) *watch {
	return &watch{after: after, timer: time.AfterFunc(after, end)}
}

func (w *watch) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inProgress += n
	w.timer.Stop()
	if w.inProgress == 0 {
		w.timer.Reset(w.after)
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
