// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// Error says why a request cannot be accepted.
type Error struct {
	Category tinker.Category
	Message  string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrClosed is the error of requests after Close.
var ErrClosed = errors.New("server is stopping")

func badRequest(format string, args ...any) *Error {
	return &Error{Category: tinker.CategoryUser, Message: fmt.Sprintf(format, args...)}
}

func notFound(what, id string) *Error {
	return &Error{Category: tinker.CategoryNotFound, Message: fmt.Sprintf("%s %s not found", what, id)}
}

// userError is the result of an operation that the client requested wrongly.
func userError(format string, args ...any) error {
	return &model.UserError{Msg: fmt.Sprintf(format, args...)}
}

// asFailure converts the error of an operation to its result.
func asFailure(err error) tinker.FailedResult {
	if scripted, ok := errors.AsType[*fault.Failure](err); ok {
		return tinker.FailedResult{Error: scripted.Message, Category: tinker.Category(scripted.Category)}
	}
	if user, ok := errors.AsType[*model.UserError](err); ok {
		return tinker.FailedResult{Error: user.Msg, Category: tinker.CategoryUser}
	}
	category := tinker.CategoryServer
	if errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, checkpoint.ErrExists) || errors.Is(err,
		checkpoint.ErrName) {
		category = tinker.CategoryUser
	}
	return tinker.FailedResult{Error: err.Error(), Category: category}
}
