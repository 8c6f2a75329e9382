// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
)

// Options are the code of a function, and the settings of its calls.
type Options struct {
	// Code is the text of the code. If it is empty, the code is in Module, a module of the image.
	Code, Module string
	// Function is the name of the function; empty for reward or rewards, whichever the code defines.
	Function string
	// Processes is the number of processes that run calls at the same time. If the function is async, each process runs
	// Concurrency calls at the same time.
	Processes, Concurrency int
	Timeout                time.Duration
	// MemoryBytes bounds each process with its descendants. Defaults to the runner's default.
	MemoryBytes int64
	// OnError is the reward of a reply for which the function raises, or returns a value that is no reward. If it is
	// nil, such a reply is a fault.
	OnError *float64

	// entry is the method for which the function is called, if the name of the function does not decide that.
	entry string
}

// Grader is a reward that is a Python function. It is safe for concurrent use.
type Grader struct {
	function *function
	// onError is Options.OnError.
	onError *float64
}

// New returns a Grader. Nothing is started yet.
func New(host *Host, o Options) (*Grader, error) {
	f, err := newFunction(host, o, "reward(row, reply) or rewards(row, replies)", methodReward, methodRewards)
	if err != nil {
		return nil, err
	}
	return &Grader{function: f, onError: o.OnError}, nil
}

// Check returns nil once the function can be called. The error is a *CodeError if its code is wrong.
func (g *Grader) Check(ctx context.Context) error { return g.function.Check(ctx) }

// GradesTogether reports whether the function scores the replies of a group together. It is known once Check has
// returned nil.
func (g *Grader) GradesTogether() bool { return g.function.entry.Load() == methodRewards }

// Grade implements verify.Grader.
func (g *Grader) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (verify.Score, error) {
	if g.GradesTogether() {
		return verify.Score{}, &environment.Fault{Permanent: true, Err: verify.ErrTogether}
	}
	params, err := json.Marshal(map[string]any{"row": row.AllFields(), "reply": replyOf(reply)})
	if err != nil {
		return verify.Score{}, &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding a call of the reward: %w", err)}
	}
	value, err := g.function.call(ctx, client.Call{Method: methodReward, Params: params, Seed: reply.Seed})
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
	value, err := g.function.call(ctx, client.Call{Method: methodRewards, Params: params, Seed: replies[0].Seed})
	if err != nil {
		score, err := g.failed(err)
		return slices.Repeat([]verify.Score{score}, len(replies)), err
	}
	return scoresOf(value, len(replies))
}

// failed returns the result of a failed call: Options.OnError for code that raises, or a fault.
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
