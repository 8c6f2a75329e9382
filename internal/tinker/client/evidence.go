// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Evidence describes an event for people: which request failed, and how the server answered it. It is one line of at
// most maxEvidence bytes, without keys, tokens and prompts.
func (e Event) Evidence() string {
	if e.Category == tinker.CategoryPaused {
		return firstLine(e.Reason, maxEvidence)
	}
	if e.Method == "" {
		return ""
	}
	return evidence(e.Method, e.Path, e.Status, e.Reason)
}

// EvidenceOf describes the failed request of the first Error in err's chain, as Event.Evidence does; it is empty if
// there is none.
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
	text := method + " " + firstLine(path, maxEvidencePath) + " got no answer"
	if status != 0 {
		text = fmt.Sprintf("%s %s was answered with %d", method, firstLine(path, maxEvidencePath), status)
	}
	if line := firstLine(reason, maxEvidence-len(text)-2); line != "" {
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

// firstLine returns the first line that is not blank, up to a number of bytes.
func firstLine(text string, limit int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if len(line) <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:max(0, limit-len("..."))], "") + "..."
}

const redacted = "[redacted]"

var (
	// numberList matches what may be tokens, and encodedData what may be an encoded body. Words of messages and
	// ids are shorter.
	numberList  = regexp.MustCompile(`-?\d+(\.\d+)?([,;\s]+-?\d+(\.\d+)?){3,}`)
	encodedData = regexp.MustCompile(`[A-Za-z0-9+/=_\-\\]{100,}`)
	// quotedText matches what may be a prompt.
	quotedText = regexp.MustCompile(`(^|[\s(=])(['"])[^'"\n]{48,}['"]`)
	// echoedInput matches the part of a validation error that repeats the input.
	echoedInput = regexp.MustCompile(`(?s)\b(input|input_value|ctx)["']?\s*[=:].*`)
)

// redact removes from a server's message the credentials, and what may repeat tokens or prompts of the request.
func redact(text string, credentials ...string) string {
	for _, credential := range credentials {
		if credential != "" {
			text = strings.ReplaceAll(text, credential, redacted)
		}
	}
	text = echoedInput.ReplaceAllString(text, "$1: "+redacted)
	text = numberList.ReplaceAllString(text, redacted)
	text = quotedText.ReplaceAllString(text, "$1"+redacted)
	text = encodedData.ReplaceAllString(text, redacted)
	return strings.Map(printable, text)
}

// printable drops control characters except line breaks, and bytes that are not UTF-8.
func printable(r rune) rune {
	if r == '\n' || r == '\t' || (r >= ' ' && r != '\uFFFD' && r != 0x7f) {
		return r
	}
	return -1
}
