// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rollout/probe"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// runProbe checks the environment of a definition and leaves the result in the termination log, and on
// standard output. It exits with 64 when the definition is wrong, and with 75 when the environment does
// not answer as it should and may do so later.
func runProbe(ctx context.Context, env environ) error {
	flags := flag.NewFlagSet("rollout probe", flag.ContinueOnError)
	definition := flags.String("definition", "/etc/tinker-operator/definition/"+contract.DefinitionName,
		"`file` with the environment's definition")
	terminationLog := flags.String("termination-log", "", "`file` that the result is written to, besides standard output")
	var data source.Config
	addDataFlags(flags, &data)
	if err := parse(flags, env); err != nil {
		return err
	}
	logger := newLogger(env.stderr, slog.LevelInfo)
	loader := setup.NewLoader(data, version.UserAgent(userAgent), logger)
	builder := registry.Builder{
		Data: loader.Open, Secret: setup.ReadSecret(data.Root), Programs: setup.Programs, Agents: setup.Agents,
		Sandboxes: setup.Sandboxes,
		Gateway:   setup.Gateway(logger), Logger: logger, Now: time.Now,
	}
	result, final := probeFile(ctx, *definition, loader, builder)
	encoded, err := contract.EncodeProbeResult(result)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(env.stdout, string(encoded)); err != nil {
		return err
	}
	if *terminationLog != "" {
		if err := os.WriteFile(*terminationLog, encoded, 0o644); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	found := fmt.Errorf("%s: %s", result.Reason, result.Message)
	switch {
	case result.OK:
		return nil
	case final:
		return configError(found)
	default:
		return &exitError{code: exitUnavailable, err: found}
	}
}

// probeFile reads a definition and checks its environment.
func probeFile(ctx context.Context, name string, loader *source.Loader,
	builder registry.Builder) (result contract.ProbeResult, final bool) {
	data, err := os.ReadFile(name)
	if err != nil {
		return contract.ProbeResult{Reason: problem.Invalid, Message: err.Error()}, true
	}
	definition, err := contract.DecodeDefinition(data)
	if err != nil {
		return contract.ProbeResult{Reason: problem.Invalid, Message: err.Error()}, true
	}
	result, final = probe.Probe(ctx, builder, definition)
	if result.OK && definition.Dataset != nil {
		result.Contents = loader.Contents(*definition.Dataset)
	}
	return result, final
}
