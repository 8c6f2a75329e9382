// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command rollout is a rollout worker: it plays groups of episodes that the run's learner leases to it.
// Its command probe checks an environment instead, without a model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	// The CA certificates are built in, since images contain only the programs.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// Exit codes, besides contract.ExitVersion.
const (
	exitFailure     = 1
	exitConfig      = 64
	exitUnavailable = 75
)

// environ is the program's environment: its arguments, variables and streams.
type environ struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
}

// gcPercent is how much the heap grows between two garbage collections, unless GOGC is set: less than Go's 100, since
// workers have more processor time than memory to spare (BenchmarkSessions).
const gcPercent = 60

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, environ{args: os.Args[1:], getenv: os.Getenv, stdout: os.Stdout, stderr: os.Stderr})
	stop()
	os.Exit(code)
}

// run runs the requested command and returns the exit code.
func run(ctx context.Context, env environ) int {
	command := runWorker
	if len(env.args) > 0 && env.args[0] == "probe" {
		command, env.args = runProbe, env.args[1:]
	}
	err := command(ctx, env)
	var exit *exitError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &exit):
		fmt.Fprintln(env.stderr, "rollout:", exit)
		return exit.code
	default:
		fmt.Fprintln(env.stderr, "rollout:", err)
		return exitFailure
	}
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// configError marks an error that starting the program again would not fix. An error that a program of another build
// would not have gets an exit code of its own, by which the manager knows that it has to replace the workers.
func configError(err error) error {
	if contract.IsVersionError(err) || errors.Is(err, exchange.ErrVersion) {
		return &exitError{code: contract.ExitVersion, err: err}
	}
	return &exitError{code: exitConfig, err: err}
}

// newLogger logs JSON.
func newLogger(output io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(output, &slog.HandlerOptions{Level: level}))
}

// parse parses flags. Any other argument is an error.
func parse(flags *flag.FlagSet, env environ) error {
	flags.SetOutput(env.stderr)
	if err := flags.Parse(env.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return configError(err)
	}
	if flags.NArg() > 0 {
		return configError(fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	return nil
}
