// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// startTimeout bounds a start: the runner's own limit and what it takes to end a program.
const startTimeout = 2 * time.Minute

// callPauses are those of a call whose program cannot be called.
var callPauses = wait.Backoff{First: 200 * time.Millisecond, Longest: 20 * time.Second}

// Options are what a function is called with.
type Options struct {
	// Code is its text, and Function its name; empty for reward or rewards, whichever there is.
	Code, Function string
	// Processes run calls at once, and each process runs Concurrency calls at once if the function is async.
	Processes, Concurrency int
	Timeout                time.Duration
	// MemoryBytes bounds each process with what it starts; 0 for the runner's default.
	MemoryBytes int64
	// OnError is the reward of a reply for which the function raises, or returns what is no reward; nil has that be a
	// fault.
	OnError *float64
}

// Grader is a reward that is a Python function. It is safe for concurrent use.
type Grader struct {
	host *Host
	name string
	spec protocol.Spec
	// onError is Options.OnError.
	onError *float64
	// together says that the function scores the replies of a group together, as its program has said.
	together atomic.Bool

	mu      sync.Mutex
	current *start
}

// start is a program that was started, or is being started.
type start struct {
	done chan struct{} // closed when the other fields are set
	conn *client.Client
	*client.Program
	err error
}

// New returns a Grader. Nothing is started yet.
func New(host *Host, o Options) (*Grader, error) {
	base := protocol.Spec{
		Env: host.Env, InheritEnv: host.InheritEnv, Processes: o.Processes, Concurrency: o.Concurrency,
		Limits: protocol.Limits{CallSeconds: o.Timeout.Seconds(), MemoryBytes: o.MemoryBytes},
	}
	function := python.Function{Code: o.Code, Name: o.Function}
	spec, err := python.Spec(cmp.Or(host.Interpreter, "python3"), function, base)
	if err != nil {
		return nil, err
	}
	if _, invalid := spec.Validate(); invalid != nil {
		return nil, invalid
	}
	return &Grader{host: host, name: host.name(), spec: spec, onError: o.OnError}, nil
}

// ready returns the program once it can be called. It starts one if there is none, or none any more. Whoever asks
// meanwhile waits for the same start.
func (g *Grader) ready(ctx context.Context) (*start, error) {
	g.mu.Lock()
	s := g.current
	if s == nil || s.isOver() {
		s = &start{done: make(chan struct{})}
		g.current = s
		go g.begin(context.WithoutCancel(ctx), s)
	}
	g.mu.Unlock()
	select {
	case <-s.done:
		return s, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// isOver reports whether another start has to follow.
func (s *start) isOver() bool {
	return wait.IsClosed(s.done) && (s.err != nil || wait.IsClosed(s.conn.Ended()))
}

func (g *Grader) begin(ctx context.Context, s *start) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer close(s.done)
	if s.conn, s.err = g.host.connect(ctx); s.err != nil {
		return
	}
	if s.Program, s.err = s.conn.Start(ctx, g.name, g.spec); s.err != nil {
		s.err = describe(s.err)
		return
	}
	var said struct{ Entry string }
	if err := json.Unmarshal(s.Value, &said); err != nil || said.Entry != methodReward && said.Entry != methodRewards {
		s.err = &CodeError{Code: protocol.CodeWrongSignature, text: fmt.Sprintf(
			"The code defines %s: define reward(row, reply) or rewards(row, replies).", cmp.Or(said.Entry, "no function"))}
		_ = s.Stop(ctx) // an error says that the connection has ended, and the program with it
		return
	}
	g.together.Store(said.Entry == methodRewards)
}

// GradesTogether reports whether the function scores the replies of a group together. It is known once Check has
// returned nil.
func (g *Grader) GradesTogether() bool { return g.together.Load() }

// forget has the program started anew, since the runner does not know it.
func (g *Grader) forget(s *start) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == s {
		g.current = nil
	}
}

// Check returns nil once the function can be called. The error is a *CodeError if its code is wrong.
func (g *Grader) Check(ctx context.Context) error {
	_, err := g.ready(ctx)
	return err
}

// Grade implements verify.Grader.
func (g *Grader) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (verify.Score, error) {
	if g.GradesTogether() {
		return verify.Score{}, &environment.Fault{Permanent: true, Err: verify.ErrTogether}
	}
	params, err := json.Marshal(map[string]any{"row": row.AllFields(), "reply": replyOf(reply)})
	if err != nil {
		return verify.Score{}, &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding a call of the reward: %w", err)}
	}
	value, err := g.call(ctx, client.Call{Method: methodReward, Params: params, Seed: reply.Seed})
	if err != nil {
		return g.failed(err)
	}
	return scoreOf(value)
}

// GradeGroup scores the replies to the prompt of one row together. An error is a *environment.Fault, or the context's.
func (g *Grader) GradeGroup(ctx context.Context, row dataset.Row, replies []environment.Reply) ([]verify.Score, error) {
	given := make([]reply, len(replies))
	for i, r := range replies {
		given[i] = replyOf(r)
	}
	params, err := json.Marshal(map[string]any{"row": row.AllFields(), "replies": given})
	if err != nil {
		return nil, &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding a call of the reward: %w", err)}
	}
	value, err := g.call(ctx, client.Call{Method: methodRewards, Params: params, Seed: replies[0].Seed})
	if err != nil {
		score, err := g.failed(err)
		return slices.Repeat([]verify.Score{score}, len(replies)), err
	}
	return scoresOf(value, len(replies))
}

// call calls the function. While it cannot be called, the call waits, and the time limit of the episode does not run:
// the reply is not at fault, and nothing is scored without the function.
func (g *Grader) call(ctx context.Context, call client.Call) (json.RawMessage, error) {
	for between := (wait.Pauses{Backoff: callPauses}); ; {
		s, err := g.ready(ctx)
		if err == nil {
			var result client.Result
			if result, err = s.Call(ctx, call); err == nil {
				return result.Value, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case client.After(err, true) == client.Permanent:
			return nil, describe(err)
		case client.IsUnknown(err):
			g.forget(s)
		}
		if !g.host.Wait {
			return nil, &environment.Fault{Err: describe(err)}
		}
		g.log().Warn("a reward cannot be called and is called again", "pause", between.Base(between.Failures+1).String(),
			"err", err)
		resume := environment.RecorderFrom(ctx).Pause()
		err = between.Sleep(ctx)
		resume()
		if err != nil {
			return nil, err
		}
	}
}

func (g *Grader) log() *slog.Logger { return cmp.Or(g.host.Logger, slog.Default()) }

// failed decides what a failed call is: the user's own choice for code that raises, or a fault.
func (g *Grader) failed(err error) (verify.Score, error) {
	var code *CodeError
	if !errors.As(err, &code) {
		return verify.Score{}, err
	}
	if g.onError != nil && code.isAnswer() {
		return verify.Score{Reward: *g.onError, Metrics: map[string]float64{MetricErrors: 1}}, nil
	}
	return verify.Score{}, &environment.Fault{Permanent: true, Err: err}
}

var _ verify.Grader = (*Grader)(nil)
