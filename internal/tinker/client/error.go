// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// ErrModelBroken is returned by every operation of a Model after a submit failed for good: its numbers can
// no longer be trusted, so the model is to be abandoned.
var ErrModelBroken = errors.New("model is broken by an earlier submit")

// ErrUnsupported says that the server has no such endpoint.
var ErrUnsupported = errors.New("endpoint is not supported by the server")

// Error is what every failed call returns, somewhere in its chain.
type Error struct {
	Category tinker.Category
	// Op is the operation: forward_backward, retrieve_future and so on.
	Op string
	// Status is the HTTP status, 200 for a result that failed, and 0 without an answer.
	Status int
	// RequestID is the promise that failed, if there was one.
	RequestID string
	// Message is the server's, for people.
	Message string
	// RetryAfter is the delay that the server asked for; 0 is none.
	RetryAfter time.Duration
	// MayHaveRun says that the server may have executed the operation, wholly or in part. It is false
	// only if each answer to the submit was a refusal.
	MayHaveRun bool
	// Err is the cause where it is not the server: the network's error, the context's, a decoder's.
	Err error
}

// Error gives the operation, the category and the message in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Op, e.Category)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
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

// Temporary says that the same call may well succeed later.
func (e *Error) Temporary() bool { return e.Category.Temporary() }

// CategoryFrom returns the category of the first Error in err's chain, and "" if there is none.
func CategoryFrom(err error) tinker.Category {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Category
	}
	return ""
}

// MayHaveRun says that the operation that failed with err may have been executed, wholly or in part. An
// error that is not of this package's making counts as one that may.
func MayHaveRun(err error) bool {
	if errors.Is(err, ErrModelBroken) {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.MayHaveRun
	}
	return err != nil
}

// asError returns a copy of the Error in err's chain, or makes one.
func asError(op string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		found := *e
		return &found
	}
	return &Error{Category: tinker.CategoryUnknown, Op: op, MayHaveRun: true, Err: err}
}

// canceled is the error of a call that its context ended before anything was sent.
func canceled(op string, cause error) *Error {
	return &Error{Category: tinker.CategoryCanceled, Op: op, Err: cause}
}

// protocolError is the error of an answer that is not what the API promises.
func protocolError(op string, err error) *Error {
	return &Error{Category: tinker.CategoryProtocol, Op: op, Status: http.StatusOK, MayHaveRun: true, Err: err}
}

// refused makes the error of an answer that is no success. A 400 without a body is a proxy's, and as good
// as no answer.
func refused(op string, r reply) *Error {
	e := &Error{
		Category: tinker.CategoryOf(r.status), Op: op, Status: r.status, Message: message(r.body), RetryAfter: askedDelay(r.header),
	}
	if r.status == http.StatusBadRequest && len(r.body) == 0 {
		e.Category = tinker.CategoryUnreachable
	}
	switch e.Category {
	case tinker.CategoryServer, tinker.CategoryTimeout, tinker.CategoryUnreachable, tinker.CategoryProtocol:
		e.MayHaveRun = true
	}
	return e
}

// maxMessage bounds what is kept of a server's message.
const maxMessage = 1024

// message finds the text in an error's body. Of validation issues it keeps where and what, for they may
// repeat the input.
func message(body []byte) string {
	var parsed struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &parsed) != nil || parsed.Detail == nil {
		return clip(strings.TrimSpace(string(body)))
	}
	var plain string
	if json.Unmarshal(parsed.Detail, &plain) == nil {
		return clip(plain)
	}
	var issues []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(parsed.Detail, &issues) != nil {
		return clip(string(parsed.Detail))
	}
	var lines []string
	for _, issue := range issues {
		lines = append(lines, strings.Trim(fmt.Sprint(issue.Loc), "[]")+": "+issue.Msg)
	}
	return clip(strings.Join(lines, "; "))
}

func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// askedDelay reads retry-after-ms and retry-after, bounded by a minute. A date counts from the answer's own
// date, so that no clock but the server's matters.
func askedDelay(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return boundedDelay(ms / 1000)
	}
	after := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(after, 64); err == nil {
		return boundedDelay(seconds)
	}
	until, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return boundedDelay(until.Sub(now).Seconds())
}

func boundedDelay(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxAsked.Seconds()) * float64(time.Second))
}
