// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
)

// userAgent identifies the program to the servers that it calls.
const userAgent = "tinker-operator-rollout"

// addDataFlags adds the flags that say where data sets are read from and stored.
func addDataFlags(flags *flag.FlagSet, config *source.Config) {
	flags.StringVar(&config.Root, "data-root", contract.DataDir,
		"`folder` with the ConfigMaps, volumes and Secrets of data sets")
	flags.StringVar(&config.Dir, "data-dir", "", "`folder` for the rows of data sets; empty for that of temporary files")
	flags.Int64Var(&config.Space, "data-bytes", 1<<30, "how many `bytes` the rows of data sets may take")
}
