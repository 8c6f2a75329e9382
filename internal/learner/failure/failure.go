// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package failure classifies failed calls of the endpoint by their consequence for the run. A failure is classified
// where it arises, since only there is the operation known; every later decision reads its code.
package failure

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// The codes that stay within the learner, which deals with them itself. During an outage the client reports the problem
// for which calls wait.
const (
	// Outage means that the same call may succeed later, so it is tried again.
	Outage = client.Outage
	// LostModel means that the model can no longer be used, so another one is opened.
	LostModel problem.Code = "LostModel"
	// Missing means that the requested object does not exist, or that the endpoint does not support the call.
	Missing problem.Code = "Missing"
)

// Awaited reports whether a run waits until a person has repaired the problem of a code.
func Awaited(code problem.Code) bool {
	row := problem.Lookup(code)
	return row.NeedsAction && row.Retry != problem.Never
}

// Error is a failure whose code is known.
type Error struct {
	Code problem.Code
	// Doing names the failed operation, as a gerund.
	Doing string
	Err   error
}

// Error describes the failure.
func (e *Error) Error() string {
	text := e.Doing + ": " + e.Err.Error()
	switch e.Code {
	case problem.DataRefused:
		return "training data were refused: " + text
	case problem.SettingsRefused, problem.UnsupportedByEndpoint:
		return "settings were refused: " + text
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns a failure with a code.
func New(code problem.Code, err error, doing string, args ...any) error {
	return &Error{Code: code, Doing: fmt.Sprintf(doing, args...), Err: err}
}

// Operation has the codes for the endpoint's refusal of an operation, and for a 404.
type Operation struct{ Refused, Missing problem.Code }

// Failed returns the failure of the operation, whose code follows from the error's category; it returns nil if err is
// nil.
func (o Operation) Failed(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return New(o.codeOf(err), err, doing, args...)
}

func (o Operation) codeOf(err error) problem.Code {
	if known, ok := errors.AsType[*Error](err); ok {
		return known.Code
	}
	if errors.Is(err, client.ErrModelBroken) {
		return LostModel
	}
	switch code := client.FailsOf(err); code {
	case client.Refused:
		return o.Refused
	case client.NotFound:
		return o.Missing
	case client.Unsupported:
		return Missing
	default:
		return code
	}
}

// CodeOf returns the code of an error; empty for an error that does not come from a call of the endpoint. A failed
// call that was not classified counts as an outage, unless its category says otherwise.
func CodeOf(err error) problem.Code {
	return Operation{Refused: Outage, Missing: Missing}.codeOf(err)
}
