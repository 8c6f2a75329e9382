// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// failedResult makes the error of a result that says the operation failed.
func failedResult(p promise, body []byte, category tinker.Category) *Error {
	switch category {
	case tinker.CategoryUser, tinker.CategoryServer:
	default:
		category = tinker.CategoryUnknown
	}
	var parsed struct {
		Error string `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &parsed) == nil {
		text = parsed.Error
	}
	e := &Error{Category: category, Op: p.op, Status: http.StatusOK, Message: clip(text), MayHaveRun: true}
	return asExists(e)
}

// taken matches what servers say of a name that is in use. The API has no code for it.
var taken = regexp.MustCompile(`(?i)(already (exists|saved|in use|taken)|\bexists\b|duplicate)`)

// asExists gives a refused save its own category if it was the name: 409, or a message that says so.
func asExists(e *Error) *Error {
	if e.Op != tinker.TypeSaveWeights && e.Op != tinker.TypeSaveSampler {
		return e
	}
	if e.Category == tinker.CategoryConflict || (e.Category == tinker.CategoryUser && taken.MatchString(e.Message)) {
		e.Category = tinker.CategoryExists
	}
	return e
}
