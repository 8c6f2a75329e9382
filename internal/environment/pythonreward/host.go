// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package pythonreward has rewards and episodes that are Python functions of a user. A runner runs them, in a container
// or a process of its own; docs/runner.md describes it. A Grader gives a function rows and replies in their standard
// shapes, Episodes gives it rows and answers its questions to the policy, and both handle functions that raise, hang or
// end their process.
package pythonreward

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// socketPatience is how long a runner may take to open its socket: it may start together with its caller.
const socketPatience = 15 * time.Second

// Host is where the programs of one environment run. Its programs share a connection to each runner. It is safe for
// concurrent use.
type Host struct {
	// Socket is the path of the runner's socket.
	Socket string
	// Pods are the pods in which the programs run instead, each program in every pod; nil if the programs run at the
	// runner of Socket.
	Pods *Pods
	// Interpreter is the command that runs Python; empty for python3.
	Interpreter string
	// Env has variables of the programs. With InheritEnv they are added to the environment of the runner.
	Env        map[string]string
	InheritEnv bool
	// StarterBytes is added to the memory of a command: the program that starts commands may be larger than the runner.
	StarterBytes int64
	// Wait makes calls wait until their program can be called again, however long that takes. If it is false, such a
	// call returns a fault.
	Wait   bool
	Logger *slog.Logger

	mu       sync.Mutex
	runners  map[string]*connecting
	programs int
}

// connecting holds the connection to one runner; current is nil until there is one.
type connecting struct {
	mu      sync.Mutex // held while a connection is made
	current *client.Client
}

// addresses returns the addresses of the runners. It fails if there is none.
func (h *Host) addresses(ctx context.Context) ([]string, error) {
	if h.Pods == nil {
		return []string{h.Socket}, nil
	}
	return h.Pods.addresses(ctx)
}

// connect returns the connection to the runner at an address. It makes a new connection if there is none, or if it
// has ended.
func (h *Host) connect(ctx context.Context, address string) (*client.Client, error) {
	h.mu.Lock()
	if h.runners == nil {
		h.runners = map[string]*connecting{}
	}
	to := h.runners[address]
	if to == nil {
		to = &connecting{}
		h.runners[address] = to
	}
	h.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.current != nil && !wait.IsClosed(to.current.Ended()) {
		return to.current, nil
	}
	var connected *client.Client
	var err error
	if h.Pods == nil {
		connected, err = client.Await(ctx, client.Address{Socket: address}, socketPatience)
	} else { // a runner that has gone has no successor at its address
		at := client.Address{TCP: address, Token: h.Pods.Token}
		if at.TLS, err = h.Pods.TLS(); err == nil {
			connected, err = client.DialAddress(ctx, at)
		}
	}
	if err != nil {
		return nil, err
	}
	to.current = connected
	return connected, nil
}

// name returns a new name for a program.
func (h *Host) name() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.programs++
	return fmt.Sprintf("function-%d", h.programs)
}

// Close ends the connections, and the programs with them.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, to := range h.runners {
		to.mu.Lock()
		if to.current != nil {
			to.current.Close()
		}
		to.mu.Unlock()
	}
}

// served is an environment whose rewards are programs. No episode begins while they cannot be called, so that nothing
// is sampled that could not be rewarded.
type served struct {
	environment.Environment
	rows    dataset.Dataset
	graders []*Grader
	// together says that the function may score groups.
	together bool
}

// Serve returns the environment as one that may be unavailable for a while: until the programs of its rewards run.
// With together, a function may score groups: it must be the only reward, and episodes must end with the one reply
// that it scores.
func Serve(env environment.Environment, rows dataset.Dataset, graders []*Grader,
	together bool) environment.Environment {
	return &served{Environment: env, rows: rows, graders: graders, together: together}
}

// Start implements environment.Environment.
func (s *served) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	if err := s.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &environment.Fault{Unavailable: true, Err: err}
	}
	return s.Environment.Start(ctx, task)
}

// Answers implements environment.Answerer.
func (s *served) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	if answerer, ok := s.Environment.(environment.Answerer); ok {
		return answerer.Answers(ctx, task)
	}
	return "", "", environment.ErrNoAnswers
}

// Examples implements environment.Exampler. The row's answer is a reply that some functions reward.
func (s *served) Examples(ctx context.Context, task environment.Task) ([]string, error) {
	return examplesOf(ctx, s.rows, task)
}

func examplesOf(ctx context.Context, rows dataset.Dataset, task environment.Task) ([]string, error) {
	row, err := rows.Row(ctx, task.Split, task.Index)
	if err != nil {
		return nil, err
	}
	if row.Answer == "" {
		return []string{"I do not know.", ""}, nil
	}
	return []string{row.Answer, ""}, nil
}

// Checker returns the environment as an environment.Checker.
func (s *served) Checker() environment.Checker { return s }

// Check implements environment.Checker.
func (s *served) Check(ctx context.Context) error {
	for _, grader := range s.graders {
		if _, err := grader.function.ready(ctx, 0); err != nil {
			return err
		}
		if grader.GradesTogether() && !s.together {
			return &CodeError{Code: protocol.CodeWrongSignature, text: "rewards(row, replies) scores the last replies of " +
				"whole groups: define reward(row, reply), or remove reward.weighted and the interaction"}
		}
	}
	return nil
}

// GradeGroup implements environment.GroupGrader.
func (s *served) GradeGroup(ctx context.Context, task environment.Task,
	replies []environment.Reply) ([]environment.Turn, error) {
	row, err := s.rows.Row(ctx, task.Split, task.Index)
	if err != nil {
		return nil, err
	}
	scores, err := s.graders[0].GradeGroup(ctx, row, replies)
	if err != nil {
		return nil, err
	}
	turns := make([]environment.Turn, len(scores))
	for i, score := range scores {
		turns[i] = environment.Turn{Rewards: score.Outcome(), Metrics: score.Metrics, Done: true}
	}
	return turns, nil
}

var (
	_ environment.Environment = (*served)(nil)
	_ environment.Answerer    = (*served)(nil)
	_ environment.Exampler    = (*served)(nil)
	_ environment.GroupGrader = (*served)(nil)
	_ environment.Checker     = (*served)(nil)
)
