// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// CodeError reports that the code of a user raises, returns a value that is no reward, cannot be loaded, or ends its
// process.
type CodeError struct {
	Code protocol.Code
	// Line is the line of the code; nil where none is known.
	Line *protocol.Line
	text string
	// limit is the run's limit that forbade a question, if the code did not catch that error.
	limit string
}

// Error implements error. It begins with the line, so that faults can be counted by it.
func (e *CodeError) Error() string { return e.text }

// IsFinal reports whether the code has to be changed before it can be loaded, wherever it runs.
func (e *CodeError) IsFinal() bool {
	switch e.Code {
	case protocol.CodeSyntaxError, protocol.CodeMissingFunction, protocol.CodeWrongSignature:
		return true
	}
	return false
}

// isAnswer reports whether the function has ended by itself without a reward: it raised, or returned another value.
func (e *CodeError) isAnswer() bool {
	switch e.Code {
	case protocol.CodeException, protocol.CodeNoValue, protocol.CodeWrongType, protocol.CodeNotFinite,
		protocol.CodeNotAwaited:
		return true
	}
	return false
}

// describe returns a failed request as a *CodeError, with the exception and the line for the author of the code. Any
// other error, for example a lost connection, is returned as it is.
func describe(err error) error {
	var failure *client.Failure
	if !errors.As(err, &failure) {
		return err
	}
	e := &CodeError{Code: failure.Err.Code, Line: failure.Err.Line}
	if q := failure.Err.Question; q != nil && q.Code == codeLimitReached {
		e.limit = q.Message
	}
	what := failure.Err.Exception
	if what == "" {
		what = strings.TrimSuffix(failure.Err.Message, ".")
	}
	if e.Line != nil {
		e.text = fmt.Sprintf("%s:%d: %s", e.Line.File, e.Line.Number, what)
		if e.Line.Text != "" {
			e.text += " (" + e.Line.Text + ")"
		}
		return e
	}
	e.text = what
	if !e.IsFinal() {
		e.text += ended(failure.Evidence)
	}
	return e
}

// ended describes how a process has ended, with the last line that it printed.
func ended(evidence *protocol.Evidence) string {
	if evidence == nil {
		return ""
	}
	text := ""
	switch {
	case evidence.Limit != "":
		text = fmt.Sprintf(": %s is %s", evidence.Limit, amount(evidence.Limit, evidence.Value))
		if evidence.Seen > 0 && strings.HasSuffix(evidence.Limit, "Bytes") {
			text += ", and " + amount(evidence.Limit, evidence.Seen) + " were needed"
		}
	case evidence.Signal != "":
		text = ": signal " + evidence.Signal
	case evidence.Exit != nil:
		text = fmt.Sprintf(": exit code %d", *evidence.Exit)
	}
	if last := lastLine(evidence.Stderr); last != "" {
		text += ": " + last
	}
	return text
}

// amount writes a limit, or an amount that exceeds it.
func amount(limit string, value float64) string {
	const mebibyte = 1 << 20
	if strings.HasSuffix(limit, "Bytes") && value >= mebibyte {
		return strconv.FormatFloat(math.Round(value/mebibyte), 'f', -1, 64) + " MiB"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
