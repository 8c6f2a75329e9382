// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli has the common parts of the commands of `kubectl tinker`: their environment, their errors and exit codes,
// and the connection to a cluster.
package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The program has these exit codes.
const (
	ExitFailure = 1
	ExitUsage   = 64
)

// IO has the environment variables, the streams and the clock of the program.
type IO struct {
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time
}

// TokenizerCache returns the folder for downloads of tokenizers, or "" if the user has none.
func (e IO) TokenizerCache() string { return e.cache("tokenizers") }

// TranscriptCache returns the folder for transcripts that were read, or "" if the user has none.
func (e IO) TranscriptCache() string { return e.cache("transcripts") }

func (e IO) cache(name string) string {
	if dir := e.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "tinker-operator", name)
	}
	if home := e.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache", "tinker-operator", name)
	}
	return ""
}

// UsageError reports that the command line is invalid.
type UsageError struct{ err error }

// Error implements error.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// Misused returns an error about the command line.
func Misused(format string, args ...any) error { return &UsageError{err: fmt.Errorf(format, args...)} }

// ErrSilent ends the program with ExitFailure and without a message, since the command has reported the cause itself.
var ErrSilent = errors.New("the command has failed")

// NoArgs refuses arguments, and names the input that the command reads instead.
func NoArgs(instead string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Misused("unexpected arguments: %s; %s", strings.Join(args, " "), instead)
		}
		return nil
	}
}

// Args requires between least and most arguments, which usage describes; most below 0 sets no bound.
func Args(least, most int, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Misused("%s is missing", usage)
		case most >= 0 && len(args) > most:
			return Misused("unexpected arguments: %s; the command takes %s", strings.Join(args[most:], " "), usage)
		}
		return nil
	}
}

// Count returns a number of things in words: "1 worker", "2 workers".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
