// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"net/http"
	"strconv"
)

// Kind is the kind of an error.
type Kind int

// The kinds of errors.
const (
	// InvalidRequest means that the codec or the gateway cannot follow the request.
	InvalidRequest Kind = iota
	// TooLarge means that the body is larger than the limit.
	TooLarge
	// Authentication means that the token is missing or wrong.
	Authentication
	// Permission means that the token does not permit the request.
	Permission
	// NotFound means that a model, path or response is unknown.
	NotFound
	// ContextLength means that the conversation is longer than the model's context, or than the limit of the episode.
	ContextLength
	// Quota means that the episode has ended or has reached one of its limits.
	Quota
	// RateLimit asks a client to wait.
	RateLimit
	// Overloaded asks a client to try again, since the endpoint does not answer.
	Overloaded
	// Internal means that the gateway has failed.
	Internal
)

// Error is an error with which a client is answered.
type Error struct {
	Kind Kind
	// Code is the code of OpenAI's dialect. Defaults to the code of the kind.
	Code string
	// Param is the path of the field, as the dialect writes it; empty if there is none.
	Param string
	// Message is one or more whole sentences. It may be empty for ContextLength.
	Message string
	// Tokens is the number of tokens of the prompt, and Limit the largest permitted number, for ContextLength.
	Tokens, Limit int
	// RetryAfter is the number of seconds after which the client may try again; 0 sends no such header.
	RetryAfter int
}

// Error returns the message for logs.
func (e *Error) Error() string {
	text := "decoding request: "
	if e.Param != "" {
		text += e.Param + ": "
	}
	return text + e.text(OpenAI)
}

// codeUnsupported is the code of a field that is not supported.
const codeUnsupported = "unsupported_parameter"

// StatusOverloaded is the HTTP status of an overload of Anthropic's service.
const StatusOverloaded = 529

// words are the words of a dialect for a kind of error.
type words struct {
	status       int
	errType      string
	code         string
	neverRetried bool
}

// vocabulary has the words of each dialect.
var vocabulary = map[Dialect]map[Kind]words{
	OpenAI: {
		InvalidRequest: {status: http.StatusBadRequest, errType: "invalid_request_error"},
		TooLarge: {status: http.StatusRequestEntityTooLarge, errType: "invalid_request_error",
			code: "request_too_large"},
		Authentication: {status: http.StatusUnauthorized, errType: "invalid_request_error", code: "invalid_api_key"},
		Permission:     {status: http.StatusForbidden, errType: "invalid_request_error", code: "permission_denied"},
		NotFound:       {status: http.StatusNotFound, errType: "invalid_request_error", code: "model_not_found"},
		ContextLength:  {status: http.StatusBadRequest, errType: "invalid_request_error", code: "context_length_exceeded"},
		Quota: {
			status: http.StatusTooManyRequests, errType: "insufficient_quota", code: "insufficient_quota", neverRetried: true,
		},
		RateLimit:  {status: http.StatusTooManyRequests, errType: "requests", code: "rate_limit_exceeded"},
		Overloaded: {status: http.StatusServiceUnavailable, errType: "server_error", code: "server_overloaded"},
		Internal:   {status: http.StatusInternalServerError, errType: "server_error"},
	},
	Anthropic: {
		InvalidRequest: {status: http.StatusBadRequest, errType: "invalid_request_error"},
		TooLarge:       {status: http.StatusRequestEntityTooLarge, errType: "request_too_large"},
		Authentication: {status: http.StatusUnauthorized, errType: "authentication_error"},
		Permission:     {status: http.StatusForbidden, errType: "permission_error"},
		NotFound:       {status: http.StatusNotFound, errType: "not_found_error"},
		ContextLength:  {status: http.StatusBadRequest, errType: "invalid_request_error"},
		Quota:          {status: http.StatusPaymentRequired, errType: "billing_error", neverRetried: true},
		RateLimit:      {status: http.StatusTooManyRequests, errType: "rate_limit_error"},
		Overloaded:     {status: StatusOverloaded, errType: "overloaded_error"},
		Internal:       {status: http.StatusInternalServerError, errType: "api_error"},
	},
}

// words returns the words for the error.
func (e *Error) words(dialect Dialect) words {
	found, ok := vocabulary[dialect][e.Kind]
	if !ok {
		found = vocabulary[dialect][Internal]
	}
	if e.Code != "" {
		found.code = e.Code
	}
	return found
}

// Status returns the HTTP status of the error.
func (e *Error) Status(dialect Dialect) int { return e.words(dialect).status }

// Header returns the headers of the answer. Clients decide by them whether and when to try again.
func (e *Error) Header(dialect Dialect) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.words(dialect).neverRetried {
		header.Set("X-Should-Retry", "false")
	}
	return header
}

// text returns the message. For ContextLength it uses the words of the services, by which agents recognise that a
// conversation is too long.
func (e *Error) text(dialect Dialect) string {
	switch {
	case e.Kind != ContextLength || e.Message != "":
		return e.Message
	case dialect == Anthropic:
		return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.Tokens, e.Limit)
	default:
		return fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d "+
			"tokens. Please reduce the length of the messages.", e.Limit, e.Tokens)
	}
}

// openAIError is an error in OpenAI's dialect.
type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// anthropicError is an error in Anthropic's dialect.
type anthropicError struct {
	Type      string         `json:"type"`
	Error     anthropicCause `json:"error"`
	RequestID string         `json:"request_id"`
}

type anthropicCause struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Body returns the body of the answer. Only the body of Anthropic's dialect has the ID of the request.
func (e *Error) Body(dialect Dialect, requestID string) []byte {
	if dialect == Anthropic {
		return marshal(e.anthropic(requestID))
	}
	return marshal(map[string]any{"error": e.openAI()})
}

func (e *Error) openAI() openAIError {
	found := e.words(OpenAI)
	return openAIError{Message: e.text(OpenAI), Type: found.errType, Param: orNull(e.Param), Code: orNull(found.code)}
}

func (e *Error) anthropic(requestID string) anthropicError {
	message := e.text(Anthropic)
	if e.Param != "" {
		message = e.Param + ": " + message
	}
	return anthropicError{
		Type: "error", Error: anthropicCause{e.words(Anthropic).errType, message}, RequestID: requestID,
	}
}

// orNull returns a pointer to a text, or nil if the text is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
