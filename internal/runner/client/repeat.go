// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// Next is the next step after the end of a call.
type Next int

// The next steps.
const (
	// Done means that the call has a result.
	Done Next = iota
	// RepeatAlone means that the process of the call has ended, perhaps because of another call: the call is repeated in
	// a process of its own.
	RepeatAlone
	// Permanent means that the call itself is at fault, and would fail again.
	Permanent
	// Unavailable means that the call has not been tried: there is no process or no runner. It is made again later, and
	// the failure does not count.
	Unavailable
)

// After returns the next step after a call that has ended with err, which may be nil. alone says that the call had a
// process of its own.
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
		protocol.CodeUnknownProgram, protocol.CodeGatewayLost,
		protocol.CodeSyntaxError, protocol.CodeImportError, protocol.CodeMissingFunction, protocol.CodeWrongSignature:
		return Unavailable // a program that was ready could not be started again
	}
	return Permanent
}

// Call calls the program, and repeats the call once in a process of its own if its process has ended. The repetition
// gets the same answers to the same questions.
func (p *Program) Call(ctx context.Context, call Call) (Result, error) {
	answers := call.Answers
	if answers == nil {
		answers = NewAnswers(call.Ask)
	}
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

// Answers remembers the answers to the questions of a call, for calls that repeat it.
type Answers struct {
	ask Asker

	mu sync.Mutex
	// known are the answers by the digest of their question, in the order in which the same question was asked.
	known map[questionDigest][]json.RawMessage
	// asked counts the questions of the last try.
	asked map[questionDigest]int
}

// questionDigest stands for a question, which may be a long conversation.
type questionDigest [sha256.Size]byte

// NewAnswers returns an empty Answers. A question that was not asked before goes to ask.
func NewAnswers(ask Asker) *Answers {
	return &Answers{ask: ask, known: map[questionDigest][]json.RawMessage{}}
}

// Unused counts the answers that the last try did not ask for. A program that repeats itself leaves none.
func (a *Answers) Unused() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	unused := 0
	for question, known := range a.known {
		unused += max(0, len(known)-a.asked[question])
	}
	return unused
}

// try returns an Asker for one try. It passes on the nth occurrence of a question only if no earlier try has an answer
// to the nth occurrence.
func (a *Answers) try() Asker {
	asked := map[questionDigest]int{}
	a.mu.Lock()
	a.asked = asked
	a.mu.Unlock()
	return func(ctx context.Context, q Question) (json.RawMessage, error) {
		key := questionDigest(sha256.Sum256([]byte(q.Method + "\x00" + string(q.Params))))
		a.mu.Lock()
		n := asked[key]
		asked[key]++
		known := a.known[key]
		a.mu.Unlock()
		if n < len(known) && known[n] != nil {
			return known[n], nil
		}
		answer, err := a.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			answer = json.RawMessage("{}")
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for len(a.known[key]) <= n {
			a.known[key] = append(a.known[key], nil)
		}
		a.known[key][n] = answer
		return answer, nil
	}
}

// IsUnknown reports whether err says that the runner does not know the program of a request: the program was stopped.
func IsUnknown(err error) bool {
	var failure *Failure
	return errors.As(err, &failure) && failure.Err.Code == protocol.CodeUnknownProgram
}
