// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tinker-operator/tinker-operator/internal/runner"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/scratch"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// Main is the main function of the runner. It returns the exit code.
func Main(arguments []string) int {
	if len(arguments) == 1 && arguments[0] == process.LaunchArgument {
		process.Launched()
		return 1
	}
	if len(arguments) == 1 && arguments[0] == spawn.Argument {
		return spawn.Main(os.Stdin, os.Stdout)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(arguments, log); err != nil {
		log.Error("The runner has ended.", "err", err)
		return 1
	}
	return 0
}

func run(arguments []string, log *slog.Logger) error {
	flags := flag.NewFlagSet("runner", flag.ContinueOnError)
	socket := flags.String("socket", "", "the Unix socket at which a worker is served")
	directory := flags.String("scratch", "", "the directory that has a directory of each process and each episode, and "+
		"nothing else")
	modules := flags.String("python-path", "", "a directory of Python modules, which the programs find before the "+
		"modules of PYTHONPATH")
	install := flags.String("install", "", "copy this program to a file, and end")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *install != "" {
		return copyTo(*install)
	}
	if *socket == "" || *directory == "" {
		return fmt.Errorf("reading the flags: --socket and --scratch are needed")
	}
	leave := make(chan os.Signal, 1)
	signal.Notify(leave, syscall.SIGTERM)
	if err := process.Harden(); err != nil {
		return err
	}
	base, err := scratch.Open(*directory)
	if err != nil {
		return err
	}
	if os.Getpid() != 1 {
		log.Warn("The runner is not process 1. A program can end it with SIGKILL, and what programs have started may " +
			"outlive it.")
	}
	server := &runner.Server{
		Socket: *socket, Scratch: base, Children: process.NewChildren(), Log: log, Version: version.String(),
		Isolation: isolation.Find(), PythonPath: *modules,
	}
	return server.Serve(context.Background(), leave)
}

// copyTo copies this program, for an init container whose image has no other program that could.
func copyTo(name string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("copying the runner: %w", err)
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o555)
	if err != nil {
		return fmt.Errorf("copying the runner: %w", err)
	}
	_, err = io.Copy(to, from)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("copying the runner: %w", err)
	}
	return nil
}
