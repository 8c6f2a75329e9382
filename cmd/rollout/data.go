// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// readSecret reads the value of a Secret's key, which is mounted below root. Files end with a line break more often than
// keys do.
func readSecret(root string) func(contract.SecretKey) (string, error) {
	return func(key contract.SecretKey) (string, error) {
		value, err := os.ReadFile(filepath.Join(root, key.Mount(), key.Key))
		if err != nil {
			return "", errors.New("the Secret or its key does not exist: create it")
		}
		return strings.TrimSpace(string(value)), nil
	}
}
