// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-tinker is a plugin of kubectl: `kubectl tinker COMMAND`. Under the name kubectl_complete-tinker it
// completes command lines for kubectl.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	// A download needs root certificates, also on a machine without any.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/runner/command"
)

func main() {
	if command.IsRunner(os.Args) { // a trial has started this process for functions of users
		os.Exit(command.Main(os.Args[1:], os.Getenv))
	}
	ends := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP. Otherwise a terminal that is closed ends the command.
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // A second signal ends the command at once.
	ctx, broken := context.WithCancelCause(ctx)
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE) // By default SIGPIPE ends the command before it removes its files.
	go func() {
		<-unread
		broken(syscall.EPIPE)
	}()
	env := cli.IO{Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now}
	code := plugin.Run(ctx, env, os.Args)
	if errors.Is(context.Cause(ctx), syscall.EPIPE) {
		code = 128 + int(syscall.SIGPIPE) // as a shell shows a program that the signal has ended
	}
	stop()
	os.Exit(code)
}
