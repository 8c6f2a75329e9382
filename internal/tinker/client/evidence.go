// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Evidence describes an event for people: which request failed, and how the server answered it. It is one line of at
// most maxEvidence bytes, without keys, tokens or prompts.
func (e Event) Evidence() string {
	if e.Category == tinker.CategoryPaused {
		return httpstatus.FirstLine(e.Reason, maxEvidence)
	}
	if e.Method == "" {
		return ""
	}
	return evidence(e.Method, e.Path, e.Status, e.Reason)
}

// EvidenceOf describes the failed request of the first Error in err's chain, as Event.Evidence does; it is empty if
// the chain has no Error.
func EvidenceOf(err error) string {
	e := asError("", err)
	if e.Method == "" {
		return ""
	}
	return evidence(e.Method, e.Path, e.Status, e.reason())
}

const (
	// maxEvidence limits an evidence, and maxEvidencePath the path of the request in it.
	maxEvidence     = 400
	maxEvidencePath = 160
)

func evidence(method, path string, status int, reason string) string {
	text := method + " " + httpstatus.FirstLine(path, maxEvidencePath) + " got no answer"
	if status != 0 {
		text = fmt.Sprintf("%s %s was answered with %d", method, httpstatus.FirstLine(path, maxEvidencePath), status)
	}
	if line := httpstatus.FirstLine(reason, maxEvidence-len(text)-2); line != "" {
		text += ": " + line
	}
	return text
}

// reason returns the server's message, or the cause if the server sent none.
func (e *Error) reason() string {
	if e.Message == "" && e.Err != nil {
		return e.Err.Error()
	}
	return e.Message
}
