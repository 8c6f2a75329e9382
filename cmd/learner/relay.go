// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/relay"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// relayCommand is the first argument that makes the program pass the requests of a person on to the endpoint of the
// run instead of training.
const relayCommand = "relay"

// passRequests passes requests on for the commands of `kubectl tinker` about checkpoints, and returns the exit code.
func passRequests(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) int {
	flags := flag.NewFlagSet(relayCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("run-file", "", "The run file, which names the endpoint. Required.")
	at := flags.String("listen", "", "The `ADDRESS` at which requests arrive. Required.")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := serveRelay(ctx, *file, *at, getenv); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func serveRelay(ctx context.Context, file, at string, getenv func(string) string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the run file: %w", err)
	}
	run, err := contract.DecodeRunFile(data)
	if err != nil {
		return fmt.Errorf("reading the run file: %w", err)
	}
	sender, err := transport.New(transport.FromEnvironment(getenv))
	if err != nil {
		return fmt.Errorf("preparing to connect to the endpoint: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	return relay.Serve(ctx, relay.Config{BaseURL: run.Fixed.BaseURL, Token: getenv("TINKER_API_KEY"), HTTP: sender},
		listener)
}
