// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// Error is a request that cannot be taken.
type Error struct {
	Category tinker.Category
	Message  string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrEnded is what requests get when the life is over.
var ErrEnded = errors.New("server is stopping")

func badRequest(format string, args ...any) *Error {
	return &Error{Category: tinker.CategoryUser, Message: fmt.Sprintf(format, args...)}
}

func notFound(what, id string) *Error {
	return &Error{Category: tinker.CategoryNotFound, Message: fmt.Sprintf("%s %s not found", what, id)}
}

// userError is the result of an operation that its caller got wrong.
func userError(format string, args ...any) error {
	return &model.UserError{Msg: fmt.Sprintf(format, args...)}
}

// asFailure turns the error of an operation into its result.
func asFailure(err error) tinker.FailedResult {
	if user, ok := errors.AsType[*model.UserError](err); ok {
		return tinker.FailedResult{Error: user.Msg, Category: tinker.CategoryUser}
	}
	category := tinker.CategoryServer
	for _, known := range []error{checkpoint.ErrNotFound, checkpoint.ErrExists, checkpoint.ErrName} {
		if errors.Is(err, known) {
			category = tinker.CategoryUser
		}
	}
	return tinker.FailedResult{Error: err.Error(), Category: category}
}
