// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package spawn

import (
	"errors"
	"io"
)

// forks would be a process that forks for each call; it needs Linux.
type forks struct{}

func protect() error { return nil }

func prefork(Config) (*forks, Start) { return nil, Start{Entry: Method} }

func (*forks) end() {}

var errNoFork = errors.New("there is no process that forks")

func (*forks) run(string, []string, io.Writer, io.Writer) (int, error) {
	return 0, errors.ErrUnsupported
}
