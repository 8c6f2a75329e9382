// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// ErrModelBroken is returned by every operation of a Model after a submit has failed permanently. The model must be
// abandoned.
var ErrModelBroken = errors.New("model is broken by an earlier submit")

// ErrUnsupported says that the server does not have the endpoint.
var ErrUnsupported = errors.New("endpoint is not supported by the server")

// Error is in the chain of the error of every failed call.
type Error struct {
	Category tinker.Category
	// Code is the code of an answer that a broker in front of the server made itself, or of a connection for which
	// client and server do not agree on TLS; otherwise it is empty.
	Code problem.Code
	// Op is the operation, such as forward_backward.
	Op string
	// Method and Path are the method and the path of the failed request; they are empty if none was sent.
	Method, Path string
	// Status is the HTTP status: 200 for a failed result, and 0 without a response.
	Status int
	// RequestID is the id of the future that failed, if the submit was accepted.
	RequestID string
	// Message is the server's message, for people. It has no keys, tokens or prompts.
	Message string
	// RetryAfter is the delay that the server asked for, or 0.
	RetryAfter time.Duration
	// MayHaveRun says that the server may have executed the operation, wholly or in part. It is false
	// only if the server rejected every attempt.
	MayHaveRun bool
	// Err is the cause if it is not the server's: an error of the network, the context or a decoder.
	Err error
}

// Error returns the operation, the category and the message in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Op, e.Category)
	var sent []string
	if e.Method != "" {
		sent = append(sent, e.Method+" "+e.Path)
	}
	if e.Status != 0 {
		sent = append(sent, fmt.Sprintf("status %d", e.Status))
	}
	if len(sent) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(sent, ": "))
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " for %s", e.RequestID)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether the same call may succeed later.
func (e *Error) Temporary() bool { return e.Category.Temporary() }

// CategoryFrom returns the category of the first Error in err's chain, or "" if the chain has no Error.
func CategoryFrom(err error) tinker.Category {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Category
	}
	return ""
}

// MayHaveRun reports whether the operation that failed with err may have been executed, wholly or in part. It is
// true for errors that this package did not make.
func MayHaveRun(err error) bool {
	if errors.Is(err, ErrModelBroken) {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.MayHaveRun
	}
	return err != nil
}

// IsUnanswered reports whether the server may have accepted the operation that failed with err, and has not reported
// its end: it may execute the operation at any later time.
func IsUnanswered(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if ok && e.RequestID != "" && e.Err == nil && (e.Status == http.StatusOK || e.Status == http.StatusBadRequest) {
		return false // this is a result
	}
	return mayBeExecuted(err)
}

// IsResult reports whether a failure is the result of an operation that the server had accepted.
func IsResult(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.RequestID != "" && e.Status == http.StatusOK && e.Err == nil
}

// asError returns a copy of the Error in err's chain, or a new one.
func asError(op string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		found := *e
		return &found
	}
	return &Error{Category: tinker.CategoryUnknown, Op: op, MayHaveRun: true, Err: err}
}

// canceled returns the error of a call whose context ended before anything was sent.
func canceled(op string, cause error) *Error {
	return &Error{Category: tinker.CategoryCanceled, Op: op, Err: cause}
}

// protocolError returns the error of a response that violates the API.
func protocolError(op string, err error) *Error {
	return &Error{Category: tinker.CategoryProtocol, Op: op, Status: http.StatusOK, MayHaveRun: true, Err: err}
}

// statusError returns the error of an unsuccessful response. A 400 without a body comes from a proxy and counts as
// no response.
func statusError(op string, r response) *Error {
	e := &Error{
		Category: tinker.CategoryOf(r.status), Op: op, Status: r.status, Message: message(r.body),
		RetryAfter: retryAfter(r.header),
	}
	if r.status == http.StatusBadRequest && len(r.body) == 0 {
		e.Category = tinker.CategoryUnreachable
	}
	if op == opConfig && e.Category == tinker.CategoryUser && !json.Valid(r.body) {
		e.Category = tinker.CategoryNotTinker // The API refuses its first request in JSON.
	}
	switch e.Category {
	case tinker.CategoryServer, tinker.CategoryTimeout, tinker.CategoryUnreachable, tinker.CategoryProtocol:
		e.MayHaveRun = true
	case tinker.CategoryUser:
		// The API refuses requests with 400 and 422 alone. Another status, such as 425, comes from a proxy, which may have
		// forwarded the request.
		e.MayHaveRun = r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity
	}
	e.classify(r)
	return e
}

// maxMessage limits how much of a server's message is kept.
const maxMessage = 1024

// message returns the text in an error's body. It keeps only the location and the message of validation issues,
// because their other fields may repeat the input.
func message(body []byte) string {
	var parsed struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &parsed) != nil || parsed.Detail == nil {
		return truncate(strings.TrimSpace(string(body)))
	}
	var plain string
	if json.Unmarshal(parsed.Detail, &plain) == nil {
		return truncate(plain)
	}
	var issues []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(parsed.Detail, &issues) != nil {
		return truncate(string(parsed.Detail))
	}
	var lines []string
	for _, issue := range issues {
		lines = append(lines, strings.Trim(fmt.Sprint(issue.Loc), "[]")+": "+issue.Msg)
	}
	return truncate(strings.Join(lines, "; "))
}

func truncate(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// retryAfter reads retry-after-ms and retry-after, up to a minute.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return limitDelay(ms / 1000)
	}
	after, _ := wait.RetryAfter(header)
	return min(after, maxRetryAfter)
}

func limitDelay(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// failedResult returns the error of a result that says that the operation failed.
func failedResult(p pending, body []byte, category tinker.Category) *Error {
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
	e := &Error{Category: category, Op: p.op, Status: http.StatusOK, Message: truncate(text), MayHaveRun: true}
	return asExists(e)
}

// nameInUse matches the messages of servers about a name that is in use. The API has no code for it.
var nameInUse = regexp.MustCompile(`(?i)(already (exists|saved|in use|taken)|\bexists\b|duplicate)`)

// modelLost matches the messages of servers that answer a failed operation of an unloaded model with 400.
var modelLost = regexp.MustCompile(`(?i)\bmodel\b.*\bnot loaded\b`)

// asLost sets CategoryNotFound if a result failed because the server no longer has the model.
func asLost(e *Error) *Error {
	if e.Status == http.StatusBadRequest && modelLost.MatchString(e.Message) {
		e.Category = tinker.CategoryNotFound
	}
	return e
}

func isSave(op string) bool { return op == tinker.TypeSaveWeights || op == tinker.TypeSaveSampler }

// asExists sets CategoryExists if a save was rejected because of its name: by status 409, or by such a message.
func asExists(e *Error) *Error {
	if !isSave(e.Op) {
		return e
	}
	if e.Category == tinker.CategoryConflict || (e.Category == tinker.CategoryUser && nameInUse.MatchString(e.Message)) {
		e.Category = tinker.CategoryExists
	}
	return e
}
