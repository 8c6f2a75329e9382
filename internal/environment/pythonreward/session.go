// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// sessions counts all sessions, for their names.
var sessions atomic.Int64

// Session is a series of calls of a program that one process answers. Its first call opens it. It is not safe for
// concurrent use.
type Session struct {
	program *Program
	seed    uint64

	start *start // nil while it is not open
	name  string
	// calls are the calls that the process has answered. If the container ends, they are made again in the process that
	// replaces it.
	calls []client.Call
	// pure says that no call depends on an earlier one: none is made again.
	pure bool
}

// NewSession returns a session that is not open.
func (p *Program) NewSession(seed uint64) *Session { return &Session{program: p, seed: seed} }

// NewPureSession returns a session that is not open, whose calls do not depend on each other.
func (p *Program) NewPureSession() *Session { return &Session{program: p, pure: true} }

// Call makes one call. An error is a *CodeError if the call has ended its process: the next call begins anew. While the
// program cannot be called, the call waits, and the clock of the episode does not run.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	for between := (wait.Pauses{Backoff: callPauses}); ; {
		used, err := s.open(ctx)
		if err == nil {
			call := client.Call{Method: method, Params: params, Session: s.name}
			var result client.Result
			if result, err = s.start.Try(ctx, call); err == nil {
				if !s.pure {
					s.calls = append(s.calls, call)
				}
				return result.Value, nil
			}
			if s.ends(err) {
				s.Close(ctx)
				s.calls = nil
				return nil, describe(err)
			}
		}
		s.start = nil
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case client.IsUnknown(err):
			s.program.function.forget(used)
		}
		if !s.program.function.host.Wait {
			return nil, &environment.Fault{Err: describe(err)}
		}
		s.program.function.log().Warn("a session cannot be used and is begun again", "err", err)
		resume := environment.RecorderFrom(ctx).Pause()
		err = between.Sleep(ctx)
		resume()
		if err != nil {
			return nil, err
		}
	}
}

// ends reports whether an error of a call says that the call, or a process that it left behind, has ended the process
// of the session.
func (*Session) ends(err error) bool {
	var failure *client.Failure
	if !errors.As(err, &failure) {
		return false
	}
	switch failure.Err.Code {
	case protocol.CodeBusy, protocol.CodeCancelled, protocol.CodeUnknownProgram, protocol.CodeUnknownSession,
		protocol.CodeStartFailed, protocol.CodeStartTimeout:
		return false
	}
	return true
}

// open opens the session if it is not open, and repeats the calls that the session has made. It waits for a free
// process. The clock of the episode does not run meanwhile. It returns the start that it has used, if there is one.
func (s *Session) open(ctx context.Context) (*start, error) {
	if s.start != nil {
		return s.start, nil
	}
	defer environment.RecorderFrom(ctx).Pause()()
	number := sessions.Add(1)
	started, err := s.program.function.ready(ctx, uint64(number))
	if err != nil {
		return nil, err
	}
	s.name = fmt.Sprintf("session-%d", number)
	if _, err := started.Open(ctx, s.name, s.seed); err != nil {
		return started, err
	}
	for _, call := range s.calls {
		call.Session = s.name
		if _, err := started.Try(ctx, call); err != nil {
			return started, err
		}
	}
	s.start = started
	return started, nil
}

// Close ends the session.
func (s *Session) Close(ctx context.Context) {
	if s.start != nil {
		_, _ = s.start.CloseSession(ctx, s.name) // an error says that there is none any more
		s.start = nil
	}
}
