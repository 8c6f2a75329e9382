// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-tinker is a plugin of kubectl: `kubectl tinker COMMAND`. Its commands tokens and render show what a
// model sees. They need no cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	// A download needs root certificates, also on a machine without any.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/tinker-operator/tinker-operator/internal/version"
)

// The program has these exit codes.
const (
	exitFailure = 1
	exitUsage   = 64
)

const usage = `kubectl tinker shows what a model that is trained through the Tinker API sees.

Usage:
  kubectl tinker COMMAND [flags]

Commands:
  tokens    convert text to token ids, and back
  render    convert conversations to prompts, and replies to messages
  version   print the version

Run "kubectl tinker COMMAND --help" for the flags of a command. No command needs a cluster.
`

// environ has the arguments, environment variables and streams of the program.
type environ struct {
	args           []string
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// usageError reports that the command line is invalid.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

func misused(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// commands has the commands by name. Each gets the arguments after its name.
var commands = map[string]func(context.Context, environ) error{
	"tokens": runTokens,
	"render": runRender,
	"version": func(_ context.Context, env environ) error {
		fmt.Fprintln(env.stdout, version.String())
		return nil
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, environ{args: os.Args[1:], getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	stop()
	os.Exit(code)
}

// run runs a command and returns the exit code.
func run(ctx context.Context, env environ) int {
	if len(env.args) == 0 || strings.HasPrefix(env.args[0], "-") || env.args[0] == "help" {
		fmt.Fprint(env.stderr, usage)
		if len(env.args) == 0 {
			return exitUsage
		}
		return 0
	}
	name := env.args[0]
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(env.stderr, "kubectl tinker: there is no command %q\n\n%s", name, usage)
		return exitUsage
	}
	env.args = env.args[1:]
	err := command(ctx, env)
	var misuse *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &misuse):
		fmt.Fprintf(env.stderr, "kubectl tinker %s: %v\nkubectl tinker %s --help shows its usage\n", name, err, name)
		return exitUsage
	default:
		fmt.Fprintf(env.stderr, "kubectl tinker %s: %v\n", name, err)
		return exitFailure
	}
}

// newFlags returns the flag set of a command, which prints the command's usage on --help.
func newFlags(env environ, name, usage string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		fmt.Fprint(env.stderr, usage)
		flags.SetOutput(env.stderr)
		flags.PrintDefaults()
	}
	return flags
}

// parse reads the arguments of a command, which accepts only flags.
func parse(flags *flag.FlagSet, env environ) error {
	err := flags.Parse(env.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return misused("%w", err)
	case flags.NArg() > 0:
		return misused("unexpected arguments: %s; input is read line by line from the standard input", strings.Join(flags.Args(), " "))
	}
	return nil
}
