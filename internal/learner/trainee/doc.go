// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package trainee is the model that a run trains: it makes, loads, steps and saves the model through the Tinker API. It
// prepares the data of a step, measures the step, finds the groups that cause the endpoint to reject a batch, and
// recognizes a policy that has diverged. It does not depend on workers or files.
//
// A step commits or its model is discarded: the API accumulates gradients until optim_step and cannot remove them. So
// every reply is checked: it counts only if it arrived, reports success, and belongs to its operation. Otherwise the
// model must be abandoned, and another model opened from a saved state.
package trainee

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// endpoint is the part of the Tinker API that the package calls.
type endpoint interface {
	CreateModel(ctx context.Context, request tinker.CreateModelRequest) (*client.Model, error)
	UnloadModel(ctx context.Context, modelID string) error
	WeightsInfo(ctx context.Context, path string) (tinker.WeightsInfo, error)
	Capabilities(ctx context.Context) (tinker.ServerCapabilities, error)
	RunCheckpoints(ctx context.Context, runID string) ([]tinker.Checkpoint, error)
}

var _ endpoint = (*client.Client)(nil)

// The codes for the endpoint's refusal of each operation, and for a 404.
var (
	creating = failure.Operation{Refused: problem.SettingsRefused, Missing: failure.Outage}
	passing  = failure.Operation{Refused: problem.DataRefused, Missing: failure.LostModel}
	stepping = failure.Operation{Refused: problem.SettingsRefused, Missing: failure.LostModel}
	loading  = failure.Operation{Refused: problem.NoUsableCheckpoint, Missing: failure.LostModel}
	asking   = failure.Operation{Refused: failure.Outage, Missing: problem.NoUsableCheckpoint}
	saving   = failure.Operation{Refused: failure.Outage, Missing: failure.LostModel}
)

// ErrColdOptimizer says that a state loads without its optimizer, which is required.
var ErrColdOptimizer = errors.New("it loads without its optimizer")

// ErrUnclean says that a reply arrived that does not belong to its operation.
var ErrUnclean = errors.New("the reply does not belong to the operation")

func unclean(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnclean, fmt.Sprintf(format, args...))
}
