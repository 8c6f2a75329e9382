// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
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
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/scratch"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// Main is the main function of the runner. It reads environment variables with getenv, and returns the exit code.
func Main(arguments []string, getenv func(string) string) int {
	if len(arguments) == 1 && arguments[0] == process.LaunchArgument {
		process.Launched()
		return 1
	}
	if len(arguments) == 1 && arguments[0] == spawn.Argument {
		return spawn.Main(os.Stdin, os.Stdout)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(arguments, getenv, log); err != nil {
		log.Error("The runner has ended.", "err", err)
		return 1
	}
	return 0
}

func run(arguments []string, getenv func(string) string, log *slog.Logger) error {
	flags := flag.NewFlagSet("runner", flag.ContinueOnError)
	socket := flags.String("socket", "", "the Unix socket at which a worker is served")
	directory := flags.String("scratch", "", "the directory that has a directory of each process and each episode, and "+
		"nothing else")
	listen := flags.String("listen", "", "the TCP address at which workers are served by TLS; "+
		protocol.CertificateVariable+", "+protocol.KeyVariable+" and "+protocol.TokenVariable+" have the certificate and "+
		"its key, in PEM, and the SHA-256 of the workers' token")
	tokenFile := flags.String("token-file", "", "a file in which the SHA-256 of the workers' token appears once a run "+
		"has claimed the pod, in place of "+protocol.TokenVariable)
	modules := flags.String("python-path", "", "a directory of Python modules, which the programs find before the "+
		"modules of PYTHONPATH")
	install := flags.String("install", "", "copy this program to a file, and end")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *install != "" {
		return copyTo(*install)
	}
	if *socket == "" && *listen == "" || *directory == "" {
		return fmt.Errorf("reading the flags: --scratch is needed, and --socket or --listen")
	}
	remote, err := remoteAt(*listen, *tokenFile, getenv)
	if err != nil {
		return err
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
		Socket: *socket, Remote: remote, Scratch: base, Children: process.NewChildren(), Log: log, Version: version.String(),
		Isolation: isolation.Find(), PythonPath: *modules,
	}
	if server.Isolation.OwnKernel {
		if err := separate(server); err != nil {
			return err
		}
	}
	return server.Serve(context.Background(), leave)
}

// separate starts each program in its own namespaces if the kernel permits that.
func separate(server *runner.Server) error {
	home, err := server.Scratch.Make()
	if err != nil {
		return err
	}
	if err := server.Children.CanStartApart(server.Scratch.Path(home)); err != nil {
		server.Log.Warn("Programs have no namespaces of their own: they can end each other and the runner, and read each "+
			"other's files.", "err", err)
	} else {
		server.Isolation.Namespaces = true
	}
	return server.Scratch.Wipe(home)
}

// remoteAt returns the settings of the runner for callers over TCP; nil if the address is empty. It removes the
// variables with these settings from the environment, which programs may inherit. Programs cannot read the environment
// with which the runner began, since the runner is not dumpable.
func remoteAt(address, tokenFile string, getenv func(string) string) (*runner.Remote, error) {
	if address == "" {
		return nil, nil
	}
	values := map[string]string{}
	for _, name := range []string{protocol.CertificateVariable, protocol.KeyVariable, protocol.TokenVariable} {
		values[name] = getenv(name)
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("reading the environment: %w", err)
		}
	}
	pair, err := tls.X509KeyPair([]byte(values[protocol.CertificateVariable]), []byte(values[protocol.KeyVariable]))
	if err != nil {
		return nil, fmt.Errorf("reading %s and %s: %w", protocol.CertificateVariable, protocol.KeyVariable, err)
	}
	remote := &runner.Remote{Address: address, Certificate: pair, TokenFile: tokenFile}
	if tokenFile != "" {
		return remote, nil
	}
	if remote.TokenSHA256, err = runner.ParseTokenSHA256(values[protocol.TokenVariable]); err != nil {
		return nil, fmt.Errorf("reading %s: %w", protocol.TokenVariable, err)
	}
	return remote, nil
}

// copyTo copies this program to a file. An init container uses it, since its image has no other program that can copy.
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
