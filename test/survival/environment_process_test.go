// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

// The environment variables of a process that serves an environment: its address, the signal that it sends itself in a
// call of its tool, and a file. The process creates the file before it sends the signal, and sends no signal if the
// file exists.
const (
	environmentAddress = "SURVIVAL_ENVIRONMENT_ADDRESS"
	environmentSignal  = "SURVIVAL_ENVIRONMENT_SIGNAL"
	environmentFile    = "SURVIVAL_ENVIRONMENT_FILE"
)

// serveEnvironment is the main function of a process that serves an environment.
func serveEnvironment() error {
	number, err := strconv.Atoi(os.Getenv(environmentSignal))
	if err != nil {
		return fmt.Errorf("reading %s: %w", environmentSignal, err)
	}
	server := newAnswerEnvironment()
	submit := server.Tools["submit"]
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	var calls atomic.Int64
	server.Tools["submit"] = func(s *orstest.Session, input json.RawMessage) (orstest.Output, error) {
		if calls.Add(1) == 5 {
			file, err := os.OpenFile(os.Getenv(environmentFile), os.O_CREATE|os.O_EXCL, 0o600)
			if err == nil {
				_ = file.Close()
				_ = syscall.Kill(os.Getpid(), syscall.Signal(number))
				<-continued // Another thread may take the signal: do not answer before the process stops.
			}
		}
		return submit(s, input)
	}
	listener, err := net.Listen("tcp", os.Getenv(environmentAddress))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	return http.Serve(listener, server)
}

// environmentProcess is an environment server in a process of its own, which is started again when it ends.
type environmentProcess struct {
	address, file string
	starts        atomic.Int64

	mu      sync.Mutex
	command *exec.Cmd
	stopped bool
	done    chan struct{}
}

func startEnvironmentProcess(t *testing.T, address string, number syscall.Signal) *environmentProcess {
	t.Helper()
	p := &environmentProcess{address: address, file: filepath.Join(t.TempDir(), "signalled"), done: make(chan struct{})}
	if err := p.start(number); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for {
			_ = p.command.Wait()
			if err := p.start(number); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.mu.Lock()
		p.stopped = true
		_ = p.command.Process.Kill()
		p.mu.Unlock()
		<-p.done
	})
	return p
}

// start starts the server, unless the test has ended.
func (p *environmentProcess) start(number syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return os.ErrClosed
	}
	p.command = exec.Command(os.Args[0])
	p.command.Env = append(os.Environ(), environmentAddress+"="+p.address, environmentFile+"="+p.file,
		fmt.Sprintf("%s=%d", environmentSignal, number))
	p.starts.Add(1)
	return p.command.Start()
}

func (p *environmentProcess) signal(number syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.command.Process.Signal(number)
}

// TestEnvironmentServerProcess kills or stops the process of an environment server in a call. The episodes end in
// faults that are counted, and the run completes.
func TestEnvironmentServerProcess(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		signal syscall.Signal
		starts int64
	}{
		"killed in a call":  {signal: syscall.SIGKILL, starts: 2},
		"stopped in a call": {signal: syscall.SIGSTOP, starts: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) {
				f.Fixed.Environments, f.Evaluation = []contract.Environment{served("letters", "http://letters")}, nil
				f.Fixed.Environments[0].Retries = 6
			})
			address := freeport.Address(t)
			definition := w.file.Fixed.Environments[0].Definition.ORS
			definition.URL = "http://" + address
			if tc.signal == syscall.SIGSTOP { // Only a server that is stopped leaves requests without an answer.
				definition.Timeouts.CallSeconds, definition.Timeouts.CreateSeconds = 1, 5
			}
			server := startEnvironmentProcess(t, address, tc.signal)
			w.startRolloutWorker("w0")
			a := w.startLearner(1, nil)
			if tc.signal == syscall.SIGSTOP {
				w.until("the learner reports that the server does not answer", func() bool {
					reply, err := w.heartbeat(a, 1, contract.DesiredRun)
					return err == nil && len(reply.Unavailable) == 1 && reply.Unavailable[0].Name == "letters"
				})
				server.signal(syscall.SIGCONT)
			}
			w.waitFor(a, contract.CauseCompleted)
			retries := 0.0
			for _, line := range w.metrics() {
				retries += line["batch/retries"]
			}
			if retries == 0 {
				t.Errorf("batch/retries is 0 in every step, though calls ended in faults")
			}
			if got := server.starts.Load(); got != tc.starts {
				t.Errorf("the server was started %d times, want %d", got, tc.starts)
			}
		})
	}
}
