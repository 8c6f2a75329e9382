// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package mathverify is the reward that compares mathematical answers by the Python package math-verify. Replies are
// read in a sandbox, because the package evaluates expressions in them.
package mathverify

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

//go:embed grader.py
var driver string

const driverFile = "grader.py"

// ProcessBytes is the memory of a process.
const ProcessBytes = 384 << 20

// callSeconds is how long a reply may take; the package itself gives up after 5 seconds for each of its steps.
const callSeconds = 60

// Grader compares answers. It is safe for concurrent use.
type Grader struct {
	*pythonreward.Program
	// idle holds the sessions that are not in use. The process of a session has loaded the package, and compares one
	// reply after the other.
	idle chan *pythonreward.Session
}

// New returns a Grader that uses the given number of processes at a host. Nothing is started yet.
func New(host *pythonreward.Host, processes int, minimum isolation.Level) (*Grader, error) {
	program, err := pythonreward.NewProgram(host, protocol.Spec{
		Kind: "math-verify", Command: []string{cmp.Or(host.Interpreter, "python3"), driverFile},
		Env: map[string]string{
			"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
		},
		Files:     map[string]string{driverFile: driver},
		Processes: processes + 1, // one more for the check of each start
		Limits: protocol.Limits{CallSeconds: callSeconds, MemoryBytes: ProcessBytes,
			OutputBytes: 1 << 30}, // the package prints warnings
		Sandbox: &protocol.Sandbox{Minimum: minimum},
	}, protocol.Run{})
	if err != nil {
		return nil, err
	}
	g := &Grader{Program: program, idle: make(chan *pythonreward.Session, processes)}
	for range processes {
		g.idle <- program.NewPureSession()
	}
	return g, nil
}

// verdict is the package's verdict about a reply.
type verdict struct {
	// Unreadable says that the row's answer is no expression.
	Unreadable     bool
	Found, Correct bool
}

// Grade implements verify.Grader.
func (g *Grader) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (verify.Score, error) {
	if row.Answer == "" {
		return verify.Score{}, permanent(errors.New("the row has no answer: map the field answer to a column with " +
			"dataset.fields"))
	}
	params, err := json.Marshal(map[string]string{"answer": row.Answer, "text": reply.Message.Content})
	if err != nil {
		return verify.Score{}, permanent(err)
	}
	value, err := g.compare(ctx, params)
	if err != nil {
		return verify.Score{}, err
	}
	var v verdict
	if err := json.Unmarshal(value, &v); err != nil {
		return verify.Score{}, permanent(err)
	}
	if v.Unreadable {
		return verify.Score{}, permanent(fmt.Errorf("math-verify cannot read the row's answer %.80q", row.Answer))
	}
	return verify.Compare(reply, v.Found, v.Correct), nil
}

// compare compares in the process of an idle session. If the process ends meanwhile, another one tries once more: a
// reply is at fault only if it ends the second process, too.
func (g *Grader) compare(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	resume := environment.RecorderFrom(ctx).Pause()
	var session *pythonreward.Session
	select {
	case session = <-g.idle:
		resume()
	case <-ctx.Done():
		resume()
		return nil, ctx.Err()
	}
	defer func() { g.idle <- session }()
	value, err := session.Call(ctx, "grade", params)
	var ended *pythonreward.CodeError
	if errors.As(err, &ended) && ended.Code != protocol.CodeException {
		value, err = session.Call(ctx, "grade", params)
	}
	if errors.As(err, &ended) {
		return nil, permanent(err)
	}
	return value, err
}

func permanent(err error) error {
	return &environment.Fault{Permanent: true, Err: fmt.Errorf("grading a reply by math-verify: %w", err)}
}

// Answers implements verify.Answerer.
func (g *Grader) Answers(row dataset.Row) (right, wrong string, ok bool) {
	return verify.Math{}.Answers(row)
}

var (
	_ verify.Grader   = (*Grader)(nil)
	_ verify.Answerer = (*Grader)(nil)
)
