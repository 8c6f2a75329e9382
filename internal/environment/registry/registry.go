// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry knows every kind of environment and builds the one that a definition describes. To add a kind,
// write a package below internal/environment and build it here.
package registry

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/singleturn"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// DefinitionError reports that a definition does not describe an environment. A retry does not help.
type DefinitionError struct{ Err error }

// Error implements error.
func (e *DefinitionError) Error() string { return "building environment: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DefinitionError) Unwrap() error { return e.Err }

// New builds the environment of a definition. An error is a *DefinitionError.
func New(definition contract.Definition) (environment.Environment, error) {
	if err := definition.Validate(); err != nil {
		return nil, &DefinitionError{Err: err}
	}
	env, err := build(definition)
	if err != nil {
		return nil, &DefinitionError{Err: err}
	}
	return env, nil
}

func build(definition contract.Definition) (environment.Environment, error) {
	rows, err := newDataset(*definition.Dataset)
	if err != nil {
		return nil, err
	}
	verifier, err := newVerifier(*definition.Reward)
	if err != nil {
		return nil, err
	}
	if definition.Interaction == nil {
		return singleturn.New(rows, verifier), nil
	}
	return newToolUse(rows, verifier, *definition.Interaction.ToolUse)
}

// newToolUse builds an environment with tools. The only tool is the calculator.
func newToolUse(rows dataset.Dataset, verifier verify.Verifier, definition contract.ToolUse) (environment.Environment, error) {
	return tooluse.New(tooluse.NewLocal(rows, verifier, tooluse.Calculator{}), tooluse.Options{
		SystemPrompt:    definition.SystemPrompt,
		MaxParseErrors:  definition.ParseErrors.MaxConsecutive,
		MaskParseErrors: definition.ParseErrors.Train == contract.TrainMask,
	})
}

func newDataset(definition contract.Dataset) (dataset.Dataset, error) {
	if definition.Arithmetic == nil {
		return nil, errors.New("dataset must be arithmetic")
	}
	return dataset.NewArithmetic(definition.Arithmetic.MaxOperand)
}

func newVerifier(definition contract.RewardRule) (verify.Verifier, error) {
	if definition.ExactMatch == nil {
		return nil, errors.New("reward must be exactMatch")
	}
	return verify.ExactMatch{}, nil
}
