// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/download"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// addDataFlags adds the flags that say where data sets are read from and stored.
func addDataFlags(flags *flag.FlagSet, config *source.Config) {
	flags.StringVar(&config.Root, "data-root", contract.DataDir, "`folder` with the ConfigMaps, volumes and Secrets of data sets")
	flags.StringVar(&config.Dir, "data-dir", "", "`folder` for the rows of data sets; empty for that of temporary files")
	flags.Int64Var(&config.Space, "data-bytes", 1<<30, "how many `bytes` the rows of data sets may take")
}

// newLoader returns what loads data sets.
func newLoader(config source.Config, logger *slog.Logger) *source.Loader {
	config.Logger, config.Now = logger, time.Now
	config.Client = &download.Client{UserAgent: version.UserAgent("tinker-operator-rollout"), Logger: logger}
	return source.New(config)
}
