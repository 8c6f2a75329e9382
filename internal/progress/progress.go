// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress logs how much of a file has arrived, so that users see that a download continues and how long it
// takes.
package progress

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// period is the time between two lines of a download. A shorter download logs no line.
const period = 5 * time.Second

// Reader logs the progress of reading through it. It is used by one goroutine.
type Reader struct {
	io.Reader
	logger *slog.Logger
	// message is the message of each line, and what is the name of the file.
	message, what string
	// done of total bytes have arrived; total is negative if it is not known.
	done, total int64
	logged      time.Time
}

// NewReader returns a reader of the file named what. done of total bytes have arrived before; total is negative if it
// is not known. message is the message of the lines. If logger is nil, nothing is logged.
func NewReader(r io.Reader, logger *slog.Logger, message, what string, done, total int64) *Reader {
	return &Reader{Reader: r, logger: logger, message: message, what: what, done: done, total: total, logged: time.Now()}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.done += int64(n)
	if now := time.Now(); n > 0 && r.logger != nil && now.Sub(r.logged) >= period {
		r.logged = now
		r.logger.Info(r.message, "file", r.what, "read", amount(r.done, r.total))
	}
	return n, err
}

// amount describes how many of the bytes have arrived, as in 12.5 of 100.0 MB.
func amount(done, total int64) string {
	const megabyte = 1e6
	if total < 0 {
		return fmt.Sprintf("%.1f MB", float64(done)/megabyte)
	}
	return fmt.Sprintf("%.1f of %.1f MB", float64(done)/megabyte, float64(total)/megabyte)
}
