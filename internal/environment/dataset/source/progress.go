// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// logEvery is the time between two reports of a file that takes longer.
const logEvery = 10 * time.Second

// progress logs how much of a file was read. It also ends the reading with its context.
type progress struct {
	ctx    context.Context
	logger *slog.Logger
	now    func() time.Time
	name   string
	reader io.Reader
	// size is -1 if it is not known.
	size, done int64
	logged     time.Time
}

func (l *Loader) logged(ctx context.Context, name string, size int64, reader io.Reader) io.Reader {
	return &progress{ctx: ctx, logger: l.config.Logger, name: name, reader: reader, size: size, logged: l.config.Now(), now: l.config.Now}
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	n, err := p.reader.Read(b)
	p.done += int64(n)
	if now := p.now(); now.Sub(p.logged) >= logEvery {
		p.logged = now
		p.logger.Info("reading data", "file", p.name, "progress", megabytes(p.done, p.size))
	}
	return n, err
}

// megabytes says how much of a file was read: "120 of 480 MB".
func megabytes(done, size int64) string {
	if size < 0 {
		return fmt.Sprintf("%d MB", done/1e6)
	}
	return fmt.Sprintf("%d of %d MB", done/1e6, size/1e6)
}
