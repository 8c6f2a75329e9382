// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"io"
	"time"
)

// patience is how long a download may take to connect and to answer, and how long its body may pause.
const patience = 30 * time.Second

// errStalled says that a download was given up. Another attempt may succeed.
var errStalled = errors.New("the server sends nothing for " + patience.String())

// progress ends a download that makes none.
type progress struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// watchProgress returns the context of a download, which ends when the server sends nothing for a while. The caller
// must call end.
func watchProgress(ctx context.Context) (context.Context, *progress) {
	p := &progress{}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(patience, func() { p.cancel(errStalled) })
	return p.ctx, p
}

func (p *progress) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// cause returns errStalled instead of an error that is its consequence.
func (p *progress) cause(err error) error {
	if err != nil && errors.Is(context.Cause(p.ctx), errStalled) {
		return errStalled
	}
	return err
}

// reader returns a reader of the body of a response that has just arrived. It notes all further progress.
func (p *progress) reader(body io.Reader) io.Reader {
	p.timer.Reset(patience)
	return readerFunc(func(b []byte) (int, error) {
		n, err := body.Read(b)
		if n > 0 {
			p.timer.Reset(patience)
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
