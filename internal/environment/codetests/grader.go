// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

//go:embed tests_driver.py
var driver string

// The files of a run.
const (
	driverFile  = "tests_driver.py"
	pythonFile  = "program.py"
	commandFile = "program"
)

// Metrics of a reply that was run, besides the metrics of all comparisons.
const (
	// MetricPassed is the share of the tests that the program has passed.
	MetricPassed = "tests_passed"
	// MetricTimeLimit, MetricFailed and MetricOverLimit count replies by the reason for which their first failed test
	// failed: the time was over, the program failed, or it exceeded another limit. A reply whose first failed test had a
	// wrong output is not counted.
	MetricTimeLimit = "tests_time_limit"
	MetricFailed    = "tests_program_failed"
	MetricOverLimit = "tests_over_limit"
)

// Options are the command and the limits of programs, and the rule of the reward.
type Options struct {
	// Command runs the program of a reply, which is the file program in its directory; empty for Python.
	Command []string
	// Field is the field of a row that has its tests.
	Field string
	// Fraction rewards the share of tests that were passed; otherwise all have to be.
	Fraction bool
	// Timeout is the processor time of a test.
	Timeout time.Duration
	// MemoryBytes bounds a program.
	MemoryBytes int64
	// Processes is how many programs run at once.
	Processes int
	Minimum   isolation.Level
}

// Grader runs programs. It is safe for concurrent use.
type Grader struct {
	*pythonreward.Program
	options Options
}

// On the clock, a test may take clockFactor times its processor time and clockSeconds more, since the processor may
// be busy.
const (
	clockFactor  = 3
	clockSeconds = 10
)

// addressFactor is how much address space a command has for each byte of memory: some languages reserve far more than
// they use.
const addressFactor = 64

// New returns a Grader of a host's programs. Nothing is started yet.
func New(host *pythonreward.Host, o Options) (*Grader, error) {
	limits := protocol.Limits{
		CPUSeconds: o.Timeout.Seconds(), CallSeconds: clockFactor*o.Timeout.Seconds() + clockSeconds,
		MemoryBytes: o.MemoryBytes,
	}
	env := map[string]string{
		"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
		"OPENBLAS_NUM_THREADS": "1",
	}
	spec := protocol.Spec{
		Kind: "tests", Command: []string{cmp.Or(host.Interpreter, "python3"), driverFile}, Env: env,
		Files:     map[string]string{driverFile: driver},
		Processes: o.Processes, Sandbox: &protocol.Sandbox{Minimum: o.Minimum}, Plain: true,
	}
	if len(o.Command) > 0 {
		spec.Command, spec.Files = o.Command, nil
		limits.AddressSpaceBytes = addressFactor * o.MemoryBytes
	}
	spec.Limits = limits
	program, err := pythonreward.NewProgram(host, spec, o.runOf(""))
	if err != nil {
		return nil, err
	}
	return &Grader{Program: program, options: o}, nil
}

// runOf returns the run of a program as a script.
func (o Options) runOf(program string) protocol.Run {
	if len(o.Command) > 0 {
		return protocol.Run{Files: map[string]string{commandFile: program}}
	}
	return protocol.Run{Files: map[string]string{pythonFile: program}, Arguments: []string{"script"}}
}

// CheckRow implements verify.RowChecker.
func (g *Grader) CheckRow(row dataset.Row) error {
	tests, err := testsOf(row, g.options.Field)
	for _, t := range tests {
		if t.kind != kindScript && len(g.options.Command) > 0 {
			err = fmt.Errorf("reading tests of the field %s: calls need language: Python", g.options.Field)
		}
	}
	if err != nil {
		return &environment.Fault{Permanent: true, Err: err}
	}
	return nil
}

// Answers implements verify.Answerer, for rows that have a solution as their answer.
func (g *Grader) Answers(row dataset.Row) (right, wrong string, ok bool) {
	return "```\n" + row.Answer + "\n```", "```\n```", row.Answer != ""
}

// Grade implements verify.Grader.
func (g *Grader) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (verify.Score, error) {
	tests, err := testsOf(row, g.options.Field)
	if err != nil {
		return verify.Score{}, &environment.Fault{Permanent: true, Err: err}
	}
	program, found := Program(reply.Message.Content)
	if !found || reply.Truncated {
		return verify.Compare(reply, found, false), nil
	}
	passed, why := 0, ""
	for _, t := range tests {
		reason, err := g.run(ctx, program, t)
		if err != nil {
			return verify.Score{}, err
		}
		if reason == passedTest {
			passed++
			continue
		}
		why = cmp.Or(why, reason)
		if !g.options.Fraction {
			break
		}
	}
	score := verify.Compare(reply, true, passed == len(tests))
	for _, name := range []string{MetricTimeLimit, MetricFailed, MetricOverLimit} {
		score.Metrics[name] = 0
	}
	if why != "" && why != wrongOutput {
		score.Metrics[why] = 1
	}
	if g.options.Fraction {
		score.Reward = float64(passed) / float64(len(tests))
		score.Metrics[MetricPassed] = score.Reward
	}
	return score, nil
}

// Results of a test that are not metrics.
const (
	passedTest  = "passed"
	wrongOutput = "wrong output"
)

// run runs one test, and returns passedTest or why it has failed. An error is a fault.
func (g *Grader) run(ctx context.Context, program string, t test) (string, error) {
	run := g.options.runOf(program)
	run.Stdin = t.stdin
	if t.kind != kindScript {
		request := map[string]any{"function": t.function, "arguments": t.arguments}
		if t.kind == kindAssertion {
			request = map[string]any{"expression": t.expression}
		}
		text, err := json.Marshal(request)
		if err != nil {
			return "", &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding a test: %w", err)}
		}
		run.Stdin, run.Arguments = string(text), []string{"call"}
	}
	params, err := json.Marshal(run)
	if err != nil {
		return "", &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding a test: %w", err)}
	}
	value, err := g.Call(ctx, client.Call{Method: protocol.MethodRun, Params: params, Alone: true})
	if err != nil {
		return "", err
	}
	var outcome protocol.Outcome
	if err := json.Unmarshal(value, &outcome); err != nil {
		return "", &environment.Fault{Err: fmt.Errorf("decoding the outcome of a test: %w", err)}
	}
	return judge(t, outcome), nil
}

// judge compares the result of a program with the expected result of its test.
func judge(t test, o protocol.Outcome) string {
	switch {
	case o.Limit == "cpuSeconds" || o.Limit == "callSeconds":
		return MetricTimeLimit
	case o.Limit != "":
		return MetricOverLimit
	case o.Exit == nil || *o.Exit != 0:
		return MetricFailed
	}
	var passed bool
	if t.kind == kindScript {
		passed = sameOutput(o.Stdout, t.output)
	} else {
		got, err := decodeValue(o.Stdout)
		if err != nil {
			return MetricFailed
		}
		passed = t.kind == kindCall && sameReturn(got, t.expected) || t.kind == kindAssertion && equal(got, t.expected)
	}
	if passed {
		return passedTest
	}
	return wrongOutput
}

var (
	_ verify.Grader     = (*Grader)(nil)
	_ verify.Answerer   = (*Grader)(nil)
	_ verify.RowChecker = (*Grader)(nil)
)
