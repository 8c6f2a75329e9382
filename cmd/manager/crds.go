// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/crds"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// applyCRDs is the first argument with which the manager creates or updates the CRDs, and ends.
const applyCRDs = "apply-crds"

// crdsDeadline is how long apply-crds may take.
const crdsDeadline = 2 * time.Minute

func runApplyCRDs(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, crdsDeadline)
	defer cancel()
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = version.UserAgent("tinker-operator")
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	return crds.Apply(ctx, c, log)
}
