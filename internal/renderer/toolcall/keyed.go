// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"strings"
	"unicode"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// GLM writes a call as the tool's name, followed by the key and the value of each argument between these tags.
const (
	KeyOpen    = "<arg_key>"
	KeyClose   = "</arg_key>"
	ValueOpen  = "<arg_value>"
	ValueClose = "</arg_value>"
)

// Keyed is the Reader of calls with keys and values between tags. A value that is valid JSON is read as JSON, and any
// other value as text.
func Keyed(inner, _ string) (call chat.ToolCall, problem string) {
	inner = pyjson.Strip(inner)
	end := strings.IndexFunc(inner, func(r rune) bool { return !isNamePart(r) })
	if end < 0 {
		end = len(inner)
	}
	if end == 0 {
		return chat.ToolCall{}, "Malformed GLM tool call"
	}
	arguments, problem := keyedArguments(pyjson.Strip(inner[end:]))
	if problem != "" {
		return chat.ToolCall{}, problem
	}
	return chat.ToolCall{Name: inner[:end], Arguments: pyjson.JSON(arguments)}, ""
}

// isNamePart reports whether a character may be in the name of a tool.
func isNamePart(r rune) bool {
	return r == '_' || r == '-' || r == '.' || unicode.In(r, unicode.L, unicode.N)
}

func keyedArguments(body string) (arguments *pyjson.Object, problem string) {
	arguments = &pyjson.Object{}
	for {
		before, p, ok := nextPair(body)
		if !ok {
			break
		}
		if pyjson.Strip(before) != "" {
			return nil, "Unexpected content between tool call arguments"
		}
		name := pyjson.Strip(p.name)
		if name == "" {
			return nil, "Empty tool call argument key"
		}
		arguments.Set(name, argumentOf(p.value))
		body = body[p.end:]
	}
	if pyjson.Strip(body) != "" {
		return nil, "Unexpected trailing content inside tool call"
	}
	return arguments, ""
}

// nextPair finds the first key that is followed by a value, and returns the text before it.
func nextPair(body string) (before string, p parameter, ok bool) {
	before, rest, ok := strings.Cut(body, KeyOpen)
	if !ok {
		return "", parameter{}, false
	}
	for at := 0; ; {
		size := strings.Index(rest[at:], KeyClose)
		if size < 0 {
			return "", parameter{}, false
		}
		name := rest[:at+size]
		at += size + len(KeyClose)
		value, ok := strings.CutPrefix(pyjson.StripLeft(rest[at:]), ValueOpen)
		if !ok {
			continue
		}
		value, after, ok := strings.Cut(value, ValueClose)
		return before, parameter{end: len(body) - len(after), name: name, value: value}, ok
	}
}
