// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/tinker-operator/tinker-operator/internal/runner/command"
)

// startRunner starts this program once more, as the runner of functions. It ends with this process, even if this
// process is killed: no caller is connected then.
func (t *trial) startRunner(ctx context.Context) (stop func(), err error) {
	runner := exec.CommandContext(ctx, "/proc/self/exe", "--socket", t.socket(), "--scratch", t.scratch())
	runner.Args[0] = command.Name
	runner.Env = []string{}
	runner.Cancel = func() error { return runner.Process.Signal(syscall.SIGTERM) }
	if t.verbose {
		runner.Stderr = t.env.Stderr
	}
	runner.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := runner.Start(); err != nil {
		return nil, fmt.Errorf("starting the runner of functions: %w", err)
	}
	return func() {
		_ = runner.Process.Signal(syscall.SIGTERM)
		_ = runner.Wait() // The runner ends once its last caller has left.
	}, nil
}
