// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// maxUnreachable limits how often a connection is tried.
const maxUnreachable = 4

// outage reports the retries of the endpoint's client, and gives up if nothing answers.
type outage struct {
	url      string
	progress func(format string, args ...any)
	giveUp   context.CancelCauseFunc

	mu          sync.Mutex
	unreachable int
	last        tinker.Category
}

func (o *outage) observe(event client.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if event.Over {
		o.last, o.unreachable = "", 0
		return
	}
	if event.Category != o.last {
		o.progress("the endpoint %s: %s (%s); trying again", o.url, event.Category, event.Reason)
		o.last = event.Category
	}
	if event.Category == tinker.CategoryUnreachable {
		if o.unreachable++; o.unreachable == maxUnreachable {
			o.giveUp(fmt.Errorf("the endpoint %s does not answer: %s: check --url and that this machine reaches it", o.url,
				event.Reason))
		}
	}
}

// lines serializes the writes of several goroutines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(data)
}

// newLogger returns a logger of errors, or of everything.
func newLogger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelError
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
