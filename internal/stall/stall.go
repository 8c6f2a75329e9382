// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package stall ends downloads whose server sends nothing for a while.
package stall

import (
	"context"
	"errors"
	"io"
	"time"
)

// Limit is how long a server may take to connect and to answer, and how long the body of its answer may pause.
const Limit = 30 * time.Second

// Err reports that a download was stopped because its server sent nothing. Another attempt may succeed.
var Err = errors.New("the server sends nothing for " + Limit.String())

// Watch watches one request.
type Watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// New returns the context of a request, which ends when the server sends nothing for Limit. The caller must call End.
func New(ctx context.Context) (context.Context, *Watch) {
	w := &Watch{}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(Limit, func() { w.cancel(Err) })
	return w.ctx, w
}

// End ends the request.
func (w *Watch) End() {
	w.timer.Stop()
	w.cancel(nil)
}

// Cause returns Err in place of an error that is a consequence of Err.
func (w *Watch) Cause(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(w.ctx), Err) {
		return Err
	}
	return err
}

// Body returns the body of an answer that has just arrived. Each read that returns bytes restarts the limit. Its Close
// ends the request.
func (w *Watch) Body(body io.ReadCloser) io.ReadCloser {
	w.timer.Reset(Limit)
	return &watched{body: body, watch: w}
}

type watched struct {
	body  io.ReadCloser
	watch *Watch
}

// Read implements io.Reader.
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.watch.timer.Reset(Limit)
	}
	return n, b.watch.Cause(err)
}

// Close implements io.Closer.
func (b *watched) Close() error {
	b.watch.End()
	return b.body.Close()
}
