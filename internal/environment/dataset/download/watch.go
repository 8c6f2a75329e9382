// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"io"
	"time"
)

// watch ends a request whose server sends nothing for a while.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// newWatch returns the context of a request. The caller must call end.
func newWatch(ctx context.Context) (context.Context, *watch) {
	w := &watch{}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(patience, func() { w.cancel(errStalled) })
	return w.ctx, w
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause returns errStalled instead of an error that is its consequence.
func (w *watch) cause(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}
	return err
}

// stream is the body of an answer.
type stream struct {
	body  io.ReadCloser
	watch *watch
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 {
		s.watch.timer.Reset(patience)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.watch.cause(err)
	}
	return n, err
}

// Close ends the request.
func (s *stream) Close() error {
	s.watch.end()
	return s.body.Close()
}
