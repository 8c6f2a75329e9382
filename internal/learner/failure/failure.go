// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package failure says what a failed call of the endpoint means for the run. A failure is classified where it arises,
// since only there the operation is known; every later decision reads its Kind.
package failure

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Kind is what a failure means for the run.
type Kind int

const (
	// Other is the kind of all errors that no call of the endpoint gave.
	Other Kind = iota
	// Outage means that the same may succeed later, so it is tried again.
	Outage
	// DataRefused means that the endpoint refuses the training data.
	DataRefused
	// SettingsRefused means that the endpoint refuses the run's settings, such as the base model or the optimizer's.
	SettingsRefused
	// LostModel means that the model cannot be used any more, so another one is opened.
	LostModel
	// LostCheckpoint means that a checkpoint can never be loaded.
	LostCheckpoint
	// CredentialsRefused means that the endpoint refuses the API key.
	CredentialsRefused
	// NotTinker means that what answers at the endpoint's address is not the Tinker API.
	NotTinker
	// UnknownModel means that the endpoint does not offer a model that the run needs.
	UnknownModel
	// ShortContext means that the context of the model is too short for the run at this endpoint.
	ShortContext
	// MissingCheckpoint means that a checkpoint which the spec names cannot be read.
	MissingCheckpoint
	// Unsupported means that the endpoint refuses the capability check.
	Unsupported
	// Diverged means that training has led to numbers that are not finite, or to a policy that cannot be sampled.
	Diverged
	// Untrainable means that no group can be trained on, although the policy can be sampled.
	Untrainable
	// Missing means that what was asked for does not exist, or that the endpoint does not support the call.
	Missing
)

// codes are what heartbeats report while a person has to repair what caused a failure.
var codes = map[Kind]problem.Code{
	CredentialsRefused: problem.KeyRefused,
	NotTinker:          problem.EndpointNotTinker,
	UnknownModel:       problem.ModelUnknown,
	ShortContext:       problem.ContextTooShort,
	SettingsRefused:    problem.SettingsRefused,
	DataRefused:        problem.DataRefused,
	MissingCheckpoint:  problem.CheckpointMissing,
}

// Code returns the problem that a person repairs after failures of the kind; empty if the run does not wait for a
// repair.
func (k Kind) Code() problem.Code { return codes[k] }

// Error is a failure of a known kind.
type Error struct {
	Kind Kind
	// Doing is what failed, as a gerund.
	Doing string
	Err   error
}

// Error describes what failed.
func (e *Error) Error() string {
	text := e.Doing + ": " + e.Err.Error()
	switch e.Kind {
	case DataRefused:
		return "training data were refused: " + text
	case SettingsRefused, Unsupported:
		return "settings were refused: " + text
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns a failure of a kind.
func New(kind Kind, err error, doing string, args ...any) error {
	return &Error{Kind: kind, Doing: fmt.Sprintf(doing, args...), Err: err}
}

// Operation says what the endpoint's refusal of an operation means, and a 404.
type Operation struct{ Refused, Missing Kind }

// Failed returns the failure of the operation, whose kind follows from the error's category; it returns nil if err is
// nil.
func (o Operation) Failed(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return New(o.kindOf(err), err, doing, args...)
}

func (o Operation) kindOf(err error) Kind {
	if known, ok := errors.AsType[*Error](err); ok {
		return known.Kind
	}
	if errors.Is(err, client.ErrModelBroken) {
		return LostModel
	}
	switch client.CategoryFrom(err) {
	case "", tinker.CategoryCanceled:
		return Other
	case tinker.CategoryUser, tinker.CategoryTooLarge:
		return o.Refused
	case tinker.CategoryNotFound:
		return o.Missing
	case tinker.CategoryUnsupported:
		return Missing
	case tinker.CategoryUnauthorized:
		return CredentialsRefused
	case tinker.CategoryNotTinker:
		return NotTinker
	}
	return Outage
}

// KindOf returns the kind of an error. A call that nobody classified fails by an outage, unless its category says
// otherwise.
func KindOf(err error) Kind {
	return Operation{Refused: Outage, Missing: Missing}.kindOf(err)
}
