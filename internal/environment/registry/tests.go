// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/codetests"
	"github.com/tinker-operator/tinker-operator/internal/environment/mathverify"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/sandboxtools"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// sandbox is the host of programs that a policy wrote.
type sandbox struct {
	host *pythonreward.Host
	// bytes is the memory for all programs of one reward, or of all tools, together.
	bytes    int64
	minimum  isolation.Level
	programs []*pythonreward.Program
}

// maxPrograms limits the programs of one reward, or of all tools, that run at once beside a worker, however much
// memory there is.
const maxPrograms = 16

func (b Builder) newSandbox(definition contract.Definition) *sandbox {
	if definition.SandboxID() == "" || b.Sandboxes == nil || definition.Execution == nil {
		return &sandbox{}
	}
	host := b.Sandboxes(definition)
	// A worker waits until a problem is over, but a probe reports it at once.
	host.Wait, host.Logger = !b.CheckRows, b.Logger
	execution := definition.Execution
	return &sandbox{
		host: host, bytes: execution.SandboxBytes / users(definition),
		minimum: isolation.Level(execution.Isolation.Level()),
	}
}

// users counts the users that share the memory: the rewards that run programs, and the tools.
func users(definition contract.Definition) int64 {
	var n int64
	for _, rule := range definition.Reward.Rules() {
		if rule.RunsPrograms() {
			n++
		}
	}
	if definition.Interaction.RunsPrograms() {
		n++
	}
	return max(n, 1)
}

// processes returns the number of programs that run at once if each may use the given memory.
func (s *sandbox) processes(memory int64) (int, error) {
	n := s.bytes / max(memory, 1)
	if n == 0 {
		return 0, fmt.Errorf("execution.resources.limits.memory leaves %d MiB to programs, which may have %d MiB each: "+
			"raise it", s.bytes>>20, memory>>20)
	}
	return int(min(n, maxPrograms)), nil
}

var errNoSandbox = errors.New("this program can run nothing that a policy wrote")

// add adds a rule that runs text of a policy.
func (s *sandbox) add(rule settings.RewardRule) (verify.Grader, error) {
	if rule.Tests != nil {
		return s.addTests(*rule.Tests)
	}
	return s.addMathVerify()
}

// addTests adds a reward that runs programs.
func (s *sandbox) addTests(definition settings.Tests) (verify.Grader, error) {
	if s.host == nil {
		return nil, errNoSandbox
	}
	memory, err := strconv.ParseInt(definition.Memory, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("memory is no number of bytes: %w", err)
	}
	processes, err := s.processes(memory)
	if err != nil {
		return nil, err
	}
	grader, err := codetests.New(s.host, codetests.Options{
		Command: definition.Command, Field: definition.Field, Fraction: definition.Score == settings.TestFraction,
		Timeout: time.Duration(definition.TimeoutSeconds) * time.Second, MemoryBytes: memory,
		Processes: processes, Minimum: s.minimum,
	})
	if err != nil {
		return nil, err
	}
	s.programs = append(s.programs, grader.Program)
	return grader, nil
}

// newTools adds tools to a backend.
func (s *sandbox) newTools(inner tooluse.Backend, definition []settings.SandboxTool) (tooluse.Backend, error) {
	if s.host == nil {
		return nil, errNoSandbox
	}
	processes, err := s.processes(sandboxtools.SessionBytes)
	if err != nil {
		return nil, err
	}
	program, err := sandboxtools.NewProgram(s.host, processes, s.minimum)
	if err != nil {
		return nil, err
	}
	s.programs = append(s.programs, program)
	tools := make([]sandboxtools.Tool, len(definition))
	for i, tool := range definition {
		tools[i] = sandboxtools.Tool{Name: tool.Name, Kind: sandboxtools.Python}
		if tool.Shell != nil {
			tools[i].Kind = sandboxtools.Shell
		}
	}
	return sandboxtools.New(inner, program, tools), nil
}

// addMathVerify adds a reward that compares answers by math-verify.
func (s *sandbox) addMathVerify() (verify.Grader, error) {
	if s.host == nil {
		return nil, errNoSandbox
	}
	processes, err := s.processes(mathverify.ProcessBytes)
	if err != nil {
		return nil, err
	}
	grader, err := mathverify.New(s.host, processes, s.minimum)
	if err != nil {
		return nil, err
	}
	s.programs = append(s.programs, grader.Program)
	return grader, nil
}
