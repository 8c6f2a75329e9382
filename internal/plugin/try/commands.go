// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// serverPatience is the time that a server of --ors-command has to answer.
	serverPatience = 2 * time.Minute
	// serverEnds is the time that it has to end before it is killed.
	serverEnds = 5 * time.Second
	// lastBytes limits the part of a server's output that an error quotes.
	lastBytes = 2 << 10
)

// startServers starts the servers of --ors-command, and waits until they answer. stop ends them with their children.
func (t *trial) startServers(ctx context.Context) (addresses map[string]string, stop func(), err error) {
	addresses = map[string]string{}
	var started []*server
	stop = func() {
		for _, s := range started {
			s.stop()
		}
	}
	for _, value := range t.orsCommands {
		name, line, ok := strings.Cut(value, "=")
		if !ok || strings.TrimSpace(line) == "" {
			stop()
			return nil, nil, cli.Misused("--ors-command: %q is not NAME=COMMAND", value)
		}
		if t.input.environments[name] == nil {
			stop()
			return nil, nil, t.noEnvironment("--ors-command", name)
		}
		s, err := t.startServer(ctx, name, line)
		if err == nil {
			started = append(started, s)
			err = t.awaitServer(ctx, s)
		}
		if err != nil {
			stop()
			return nil, nil, err
		}
		addresses[name] = s.address
	}
	return addresses, stop, nil
}

// server is a process of --ors-command.
type server struct {
	name, line, address string
	process             *exec.Cmd
	output              *tail
	// ended is closed once the process has ended, with err.
	ended chan struct{}
	err   error
}

// startServer starts the command of a server. The variable PORT has the port that the server listens on, as in a pod.
func (t *trial) startServer(ctx context.Context, name, line string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{name: name, line: line, address: "http://127.0.0.1:" + strconv.Itoa(port), output: &tail{},
		ended: make(chan struct{})}
	// The server ends by stop, which also ends its children, and not with ctx.
	s.process = exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", line)
	s.process.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.process.WaitDelay = serverEnds
	var log io.Writer = s.output
	if t.verbose {
		log = io.MultiWriter(s.output, t.env.Stderr)
	}
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting the server of RewardEnvironment %q: %w", name, err)
	}
	t.progress("environment %s: %q serves at %s", name, line, s.address)
	go func() {
		s.err = s.process.Wait()
		close(s.ended)
	}()
	return s, nil
}

// freePort returns a free port of the loopback interface.
func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("looking for a free port: the listener has no TCP address")
	}
	return address.Port, nil
}

// awaitServer waits until a server answers. If the server ends or does not answer in time, the error quotes the
// server's last output.
func (t *trial) awaitServer(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	defer t.repeat(ctx, fmt.Sprintf("environment %s: still waiting for its server", s.name))()
	for {
		if isHealthy(ctx, s.address) {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server of RewardEnvironment %q ended with %s: correct --ors-command or the program%s",
				s.name, s.process.ProcessState, s.output)
		default:
		}
		if err := wait.Sleep(ctx, 50*time.Millisecond); err != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the server of RewardEnvironment %q does not answer GET %s/health after %s: it must listen "+
					"on the port that the variable PORT names%s", s.name, s.address, serverPatience, s.output)
			}
			return err
		}
	}
}

// isHealthy reports whether a server answers as the probe of its pod demands.
func isHealthy(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/health", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// stop ends the server and its children.
func (s *server) stop() {
	group := -s.process.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM) // An error means that the server has ended.
	select {
	case <-s.ended:
	case <-time.After(serverEnds):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-s.ended
}

// tail keeps the end of the text that is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, data...)
	if more := len(t.data) - lastBytes; more > 0 {
		t.data = append(t.data[:0], t.data[more:]...)
	}
	return len(data), nil
}

// String returns the last lines, for the end of an error.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out strings.Builder
	for line := range bytes.Lines(bytes.TrimSpace(t.data)) {
		out.WriteString("\n  " + output.Clean(strings.TrimRight(string(line), "\r\n")))
	}
	if out.Len() == 0 {
		return ", and has printed nothing"
	}
	return "; its last output:" + out.String()
}
