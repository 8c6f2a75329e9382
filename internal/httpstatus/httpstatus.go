// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpstatus describes answers with which an HTTP server refuses a request: the request, the status and the
// server's explanation, without secrets.
package httpstatus

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// mostBytes bounds the bytes that are read of an answer's body, and maxDetail the part that is kept.
	mostBytes = 4096
	maxDetail = 300
)

// Error is an answer with a status other than success.
type Error struct {
	// Method and Place describe the request. Place is the host and the path: the query and the user of a URL may be
	// secret. They are empty if they say nothing.
	Method, Place string
	Status        int
	// Detail is the first line of the server's message, without credentials, tokens and prompts. It may be empty.
	Detail string
	// Advice is the advice for a person. It may be empty.
	Advice string
	// Header is the header of the answer.
	Header http.Header
}

// Error implements error.
func (e *Error) Error() string {
	subject := "the server"
	if e.Place != "" {
		subject = e.Method + " " + e.Place
	}
	text := strings.TrimSpace(fmt.Sprintf("%s answers %d %s", subject, e.Status, http.StatusText(e.Status)))
	for _, part := range []string{e.Detail, e.Advice} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// From returns the error of a request whose answer has a status other than success. It reads the beginning of the
// body, which the caller closes. Credentials are parts of the request that the error must not repeat.
func From(request *http.Request, response *http.Response, credentials ...string) *Error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, mostBytes)) // What could be read says enough.
	return New(request, response, string(text), credentials...)
}

// New is like From, with a text in place of the body.
func New(request *http.Request, response *http.Response, text string, credentials ...string) *Error {
	return &Error{
		Method: request.Method, Place: request.URL.Host + request.URL.Path, Status: response.StatusCode,
		Detail: detail(text, credentials), Header: response.Header,
	}
}

// detail returns the first line of a text that is not a page for a browser.
func detail(text string, credentials []string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return FirstLine(Redact(line, credentials...), maxDetail)
}
