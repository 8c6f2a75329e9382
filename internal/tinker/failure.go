// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"net/http"
	"regexp"
)

// failedResult makes the error of a result that says the operation failed.
func failedResult(p promise, body []byte, category Category) *Error {
	switch category {
	case CategoryUser, CategoryServer:
	default:
		category = CategoryUnknown
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
	if e.Op != TypeSaveWeights && e.Op != TypeSaveSampler {
		return e
	}
	if e.Category == CategoryConflict || (e.Category == CategoryUser && taken.MatchString(e.Message)) {
		e.Category = CategoryExists
	}
	return e
}
