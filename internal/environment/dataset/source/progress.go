// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"io"

	"github.com/tinker-operator/tinker-operator/internal/progress"
)

// lasting is a reader that ends with a context.
type lasting struct {
	io.Reader
	ctx context.Context
}

// Read implements io.Reader.
func (l lasting) Read(p []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, context.Cause(l.ctx)
	}
	return l.Reader.Read(p)
}

// logged returns a reader of a file that logs how much of it was read, and ends with the context. The size is -1 if it
// is not known.
func (l *Loader) logged(ctx context.Context, name string, size int64, reader io.Reader) io.Reader {
	return progress.NewReader(lasting{reader, ctx}, l.config.Logger, "reading data", name, 0, size)
}
