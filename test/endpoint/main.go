// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command endpoint checks the capabilities of a server of the Tinker API as the learner does, and prints them. It is
// the half of `make conformance-endpoint` that uses this module's own client; package capability describes the checks
// and their costs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv("TINKER_API_KEY"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "endpoint:", err)
		os.Exit(1)
	}
}

// run checks the server that the arguments name, and writes the table.
func run(ctx context.Context, args []string, key string, out io.Writer) error {
	flags := flag.NewFlagSet("endpoint", flag.ContinueOnError)
	url := flags.String("url", "", "Base URL of the server, without /api/v1.")
	model := flags.String("model", "", "Name of a base model that it trains.")
	rank := flags.Int("rank", 8, "LoRA rank, for a server that rejects rank 1.")
	patience := flags.Duration("patience", time.Minute, "Time limit of checks that training does not depend on.")
	limit := flags.Duration("timeout", 30*time.Minute, "Time limit of all checks.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" || *model == "" || key == "" {
		return errors.New("give -url, -model and the environment variable TINKER_API_KEY")
	}
	api, err := client.New(client.Config{BaseURL: *url, APIKey: key,
		UserAgent: version.UserAgent("tinker-operator-endpoint")})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if err := connect(ctx, api); err != nil {
		return fmt.Errorf("no server of the Tinker API responds at %s: %w", *url, err)
	}
	began := time.Now()
	report, err := capability.Checker{
		API: api, BaseURL: *url, Model: *model, Features: capability.All(), Patience: *patience,
		Lora:         tinker.LoraConfig{Rank: *rank, TrainAttn: true, TrainMLP: true, TrainUnembed: true},
		UserMetadata: tinker.Metadata{"purpose": "probe"},
	}.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "server %s, model %s, driven by our own client in %.1f s\n", *url, *model,
		time.Since(began).Seconds())
	return write(out, report)
}

// connect connects to the server. It fails after a short time if no server responds: the client itself would wait.
func connect(ctx context.Context, api *client.Client) error {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return api.Connect(ctx)
}

// write prints a row for each feature, and the number of features of each kind of support.
func write(out io.Writer, report capability.Report) error {
	counts := map[capability.Support]int{}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range capability.All() {
		counts[report.Of(f)]++
		fmt.Fprintf(table, "%s\t%s\t%s\n", f, report.Of(f), report.Findings[f].Note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, support := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%s: %d\n", support, counts[support])
	}
	return nil
}
