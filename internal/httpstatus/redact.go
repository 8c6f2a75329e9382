// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package httpstatus

import (
	"regexp"
	"strings"
)

// FirstLine returns the first line that is not blank, up to a number of bytes.
func FirstLine(text string, limit int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if len(line) <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:max(0, limit-len("..."))], "") + "..."
}

const redacted = "[redacted]"

var (
	// numberList matches text that may be tokens, and encodedData text that may be an encoded body. Words of messages
	// and ids are shorter.
	numberList  = regexp.MustCompile(`-?\d+(\.\d+)?([,;\s]+-?\d+(\.\d+)?){3,}`)
	encodedData = regexp.MustCompile(`[A-Za-z0-9+/=_\-\\]{100,}`)
	// quotedText matches text that may be a prompt.
	quotedText = regexp.MustCompile(`(^|[\s(=])(['"])[^'"\n]{48,}['"]`)
	// echoedInput matches the part of a validation error that repeats the input.
	echoedInput = regexp.MustCompile(`(?s)\b(input|input_value|ctx)["']?\s*[=:].*`)
)

// Redact removes from a server's message the credentials, and text that may repeat tokens or prompts of the request.
func Redact(text string, credentials ...string) string {
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

// printable drops control characters except line breaks and tabs, and bytes that are not UTF-8.
func printable(r rune) rune {
	if r == '\n' || r == '\t' || (r >= ' ' && r != '\uFFFD' && r != 0x7f) {
		return r
	}
	return -1
}
