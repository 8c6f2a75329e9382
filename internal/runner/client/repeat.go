// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// Next is what follows the end of a call.
type Next int

// What can follow.
const (
	// Done means that the call has a result.
	Done Next = iota
	// RepeatAlone means that the process of the call has ended, and perhaps for another call's sake: the call is
	// repeated in a process of its own.
	RepeatAlone
	// Permanent means that the call itself is at fault. It would be again.
	Permanent
	// Unavailable means that the call has not been tried: there is no process or no runner. It is made again later, and
	// nothing counts.
	Unavailable
)

// After says what follows a call that has ended with an error, or with nil. Alone says that it had a process of its
// own.
func After(err error, alone bool) Next {
	var failure *Failure
	if err == nil {
		return Done
	}
	if !errors.As(err, &failure) {
		return Unavailable
	}
	switch failure.Err.Code {
	case protocol.CodeDied, protocol.CodeLimit, protocol.CodeProtocol, protocol.CodeSessionLost, protocol.CodeOutOfMemory:
		if alone {
			return Permanent
		}
		return RepeatAlone
	case protocol.CodeStartFailed, protocol.CodeStartTimeout, protocol.CodeBusy, protocol.CodeCancelled,
		protocol.CodeUnknownProgram,
		protocol.CodeSyntaxError, protocol.CodeImportError, protocol.CodeMissingFunction, protocol.CodeWrongSignature:
		return Unavailable // a program that was ready could not be started again
	}
	return Permanent
}

// Call calls the program, and repeats the call once in a process of its own if its process has ended. The repetition
// gets the same answers to the same questions.
func (p *Program) Call(ctx context.Context, call Call) (Result, error) {
	answers := &recorder{ask: call.Ask, known: map[string][]json.RawMessage{}}
	for {
		if call.Ask = answers.ask; call.Ask != nil {
			call.Ask = answers.try()
		}
		result, err := p.Try(ctx, call)
		if After(err, call.Alone) != RepeatAlone || call.Session != "" {
			return result, err
		}
		call.Alone = true
	}
}

// recorder remembers the answers to the questions of a call.
type recorder struct {
	ask Asker

	mu sync.Mutex
	// known are the answers by question, in the order in which the same question was asked.
	known map[string][]json.RawMessage
}

// try returns an Asker for one try. It asks what no try before has asked as often.
func (r *recorder) try() Asker {
	asked := map[string]int{}
	return func(ctx context.Context, q Question) (json.RawMessage, error) {
		key := q.Method + "\x00" + string(q.Params)
		r.mu.Lock()
		n := asked[key]
		asked[key]++
		known := r.known[key]
		r.mu.Unlock()
		if n < len(known) && known[n] != nil {
			return known[n], nil
		}
		answer, err := r.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			answer = json.RawMessage("{}")
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for len(r.known[key]) <= n {
			r.known[key] = append(r.known[key], nil)
		}
		r.known[key][n] = answer
		return answer, nil
	}
}

// IsUnknown reports whether the runner does not know the program of a request: it was stopped.
func IsUnknown(err error) bool {
	var failure *Failure
	return errors.As(err, &failure) && failure.Err.Code == protocol.CodeUnknownProgram
}
