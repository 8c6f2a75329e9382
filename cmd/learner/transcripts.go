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

	"github.com/tinker-operator/tinker-operator/internal/learner/reader"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// transcriptsCommand is the first argument that makes the program print a transcript, or files, instead of training.
const transcriptsCommand = "transcripts"

// printTranscript prints the transcript of a step of a run for `kubectl tinker transcripts`, or files of the run for
// `kubectl tinker artifacts`, or answers questions for `kubectl tinker ui`, and returns the exit code.
func printTranscript(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	r := reader.Request{Variable: os.Getenv}
	flags := flag.NewFlagSet(transcriptsCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&r.Dir, "dir", "/artifacts", "The folder of the claim.")
	flags.StringVar(&r.URL, "url", "", "What is read in the place of the claim.")
	flags.StringVar(&r.RunUID, "run-uid", "", "The uid of the run. Required.")
	flags.Int64Var(&r.Step, "step", reader.Newest,
		"The step; -1 is the newest that has a transcript, and -2 only lists them.")
	flags.BoolVar(&r.Evaluation, "evaluation", false, "Print the evaluation of the step.")
	flags.IntVar(&r.Lines, "lines", 0, "Print so many of the newest lines of metrics.jsonl in the place of a transcript.")
	list := flags.Bool("files", false, "List the files of the run in the place of a transcript.")
	var copied []delivery.Range
	flags.Func("copy", "Print the files of `RANGES`, which are JSON in base64: lists of a first and a last name.",
		func(text string) (err error) {
			copied, err = delivery.ParseRanges(text)
			return err
		})
	at := flags.String("serve", "", "Answer questions at this `ADDRESS` in the place of printing.")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if r.RunUID == "" {
		fmt.Fprintln(stderr, "--run-uid is required")
		return 2
	}
	if *at != "" {
		return serveTranscripts(ctx, r, *at, stderr)
	}
	send := func(d delivery.Delivery) error { return delivery.Write(stdout, d) }
	var err error
	switch {
	case len(copied) > 0:
		err = reader.CopyFiles(ctx, r, copied, send)
	case *list:
		err = send(reader.ListFiles(ctx, r))
	default:
		err = send(reader.Read(ctx, r))
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// serveTranscripts answers questions about a run for `kubectl tinker ui`, and returns the exit code.
func serveTranscripts(ctx context.Context, r reader.Request, address string, stderr io.Writer) int {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err == nil {
		err = reader.Serve(ctx, r, listener)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
