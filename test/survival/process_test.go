// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// programs are built once.
var programs struct {
	once sync.Once
	dir  string
	err  error
}

func build(t *testing.T) string {
	t.Helper()
	programs.once.Do(func() {
		if programs.dir, programs.err = os.MkdirTemp("", "survival"); programs.err != nil {
			return
		}
		command := exec.Command("go", "build", "-o", programs.dir, "./cmd/learner", "./cmd/rollout", "./cmd/tinkersim")
		command.Dir = "../.."
		if output, err := command.CombinedOutput(); err != nil {
			programs.err = fmt.Errorf("building: %w\n%s", err, output)
		}
	})
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return programs.dir
}

// town is a run whose parts are processes, behind a door that leads to the newest learner.
type town struct {
	*world
	bin, dir, sim string
	door          net.Listener
}

func newTown(t *testing.T) *town {
	t.Helper()
	v := &town{world: newWorld(t, nil), bin: build(t), dir: t.TempDir()}
	listener := v.listen()
	v.sim = listener.Addr().String()
	_ = listener.Close()
	v.url = "http://" + v.sim
	v.door = v.listen()
	t.Cleanup(func() { _ = v.door.Close() })
	go v.forward()
	v.file.Fixed.BaseURL, v.file.LearnerAddress = v.url, v.door.Addr().String()
	var err error
	if v.file.SpecDigest, err = contract.SpecDigest(v.file.Fixed); err != nil {
		t.Fatal(err)
	}
	if v.client, err = client.New(client.Config{BaseURL: v.url, APIKey: apiKey}); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		contract.TokenKey: []byte(v.link.Token), contract.CertificateKey: v.link.Certificate, contract.PrivateKeyKey: v.link.PrivateKey,
	} {
		v.write(filepath.Join(v.dir, name), content)
	}
	v.startSim()
	return v
}

func (v *town) write(path string, content []byte) {
	v.t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// forward is the Service: each new connection goes to the newest learner.
func (v *town) forward() {
	for {
		from, err := v.door.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := v.dial(context.Background(), "")
			if err != nil {
				return
			}
			defer to.Close()
			go func() {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}()
			_, _ = io.Copy(from, to)
		}()
	}
}

// process is a program under way.
type process struct {
	*exec.Cmd
	done chan struct{}
	code int
}

func (v *town) start(name string, env []string, args ...string) *process {
	v.t.Helper()
	p := &process{Cmd: exec.Command(filepath.Join(v.bin, name), args...), done: make(chan struct{})}
	p.Env = append(os.Environ(), append(env, "TINKER_API_KEY="+apiKey, "POD_IP=127.0.0.1")...)
	if os.Getenv("SURVIVAL_LOG") != "" {
		p.Stderr = os.Stderr
	}
	if err := p.Start(); err != nil {
		v.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		err := p.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			p.code = exit.ExitCode()
		}
	}()
	v.t.Cleanup(func() { p.strike(syscall.SIGKILL); <-p.done })
	return p
}

// strike sends a signal to this very process.
func (p *process) strike(signal syscall.Signal) { _ = p.Process.Signal(signal) }

func (v *town) startSim() *process {
	v.t.Helper()
	p := v.start("tinkersim", nil, "--listen", v.sim, "--data-dir", filepath.Join(v.dir, "sim"), "--api-key", apiKey)
	v.until("the simulator answers", func() bool {
		response, err := http.Get(v.url + "/api/v1/healthz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// until polls for a condition.
func (v *town) until(what string, holds func() bool) {
	v.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			v.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (v *town) runFile(attempt int32) string {
	v.t.Helper()
	file := v.file
	file.Attempt = attempt
	encoded, err := contract.EncodeRunFile(file)
	if err != nil {
		v.t.Fatal(err)
	}
	path := filepath.Join(v.dir, fmt.Sprintf("run-%d.json", attempt))
	v.write(path, encoded)
	return path
}

// learner starts a learner, with a fault if one is given, and leads the door to it.
func (v *town) learner(attempt int32, fault string) *process {
	v.t.Helper()
	exchange, beats := v.listen(), v.listen()
	_, _ = exchange.Close(), beats.Close()
	v.mu.Lock()
	v.address = exchange.Addr().String()
	v.mu.Unlock()
	return v.start("learner", []string{"TINKER_OPERATOR_FAULT=" + fault, fmt.Sprintf("POD_NAME=learner-%d", attempt)},
		"--run-file", v.runFile(attempt), "--link-dir", v.dir, "--exchange-listen", v.address,
		"--heartbeat-listen", beats.Addr().String(), "--termination-log", v.log(attempt))
}

func (v *town) log(attempt int32) string {
	return filepath.Join(v.dir, fmt.Sprintf("termination-%d", attempt))
}

func (v *town) worker(name string) *process {
	v.t.Helper()
	return v.start("rollout", []string{"POD_NAME=" + name}, "--run-file", v.runFile(1), "--link-dir", v.dir,
		"--spill-dir", v.t.TempDir(), "--health-listen", "")
}

// ends waits for a learner and checks exit code and verdict.
func (v *town) ends(p *process, attempt int32, want contract.Cause) contract.Verdict {
	v.t.Helper()
	select {
	case <-p.done:
	case <-time.After(3 * time.Minute):
		v.t.Fatalf("learner %d did not end; it should with %s", attempt, want)
	}
	data, err := os.ReadFile(v.log(attempt))
	if err != nil {
		v.t.Fatal(err)
	}
	verdict, err := contract.DecodeVerdict(string(data))
	if err != nil {
		v.t.Fatal(err)
	}
	if verdict.Cause != want || p.code != want.ExitCode() {
		v.t.Fatalf("learner %d ended with %s (%s) and code %d, want %s and %d",
			attempt, verdict.Cause, verdict.Message, p.code, want, want.ExitCode())
	}
	return verdict
}

// digest is that of the adapter in the newest state.
func (v *town) digest() string {
	v.t.Helper()
	for c, err := range v.client.Checkpoints(v.t.Context()) {
		if err != nil {
			v.t.Fatal(err)
		}
		path, err := tinker.ParsePath(c.TinkerPath)
		if err == nil && path.Kind == tinker.KindState && path.Name[9:17] == fmt.Sprintf("-s%06d", v.file.Fixed.Algorithm.Steps)[:8] {
			return v.archive(c.TinkerPath)
		}
	}
	v.t.Fatal("there is no final state")
	return ""
}

// TestProcesses does as processes, with signals, what the other tests do within one.
func TestProcesses(t *testing.T) {
	w := newWorld(t, nil)
	w.roll("w0")
	want := w.weights(w.end(w.learn(1, nil), contract.CauseCompleted))
	cases := map[string]func(t *testing.T, v *town){
		"nothing happens": func(_ *testing.T, v *town) {
			v.worker("w0")
			p := v.learner(1, "retire.before@3=stop")
			v.until("the learner is all but done", func() bool { return isStopped(p.Process.Pid) })
			if most := peak(v.t, p.Process.Pid); most > 64<<10 {
				v.t.Errorf("the learner took %d KiB of memory, more than 64 MiB", most)
			}
			p.strike(syscall.SIGCONT)
			v.ends(p, 1, contract.CauseCompleted)
		},
		"learners are killed": func(_ *testing.T, v *town) {
			v.worker("w0")
			for i, fault := range []string{"open.saved=kill", "row.written@1=kill", "save.submitted@2=kill", "covered.sent@3=kill"} {
				<-v.learner(int32(i+1), fault).done
			}
			v.ends(v.learner(5, ""), 5, contract.CauseCompleted)
		},
		"a worker and the learner are killed": func(_ *testing.T, v *town) {
			worker := v.worker("w0")
			<-v.learner(1, "sampler.announced@2=kill").done
			worker.strike(syscall.SIGKILL)
			v.worker("w1")
			v.ends(v.learner(2, ""), 2, contract.CauseCompleted)
		},
		"a learner is stopped and goes on": func(t *testing.T, v *town) {
			v.worker("w0")
			zombie := v.learner(1, "save.answered@2=stop")
			v.until("the first learner is stopped", func() bool { return isStopped(zombie.Process.Pid) })
			v.ends(v.learner(2, ""), 2, contract.CauseCompleted)
			zombie.strike(syscall.SIGCONT)
			v.ends(zombie, 1, contract.CauseFenced)
		},
		"a learner is told to end": func(_ *testing.T, v *town) {
			worker := v.worker("w0")
			first := v.learner(1, "covered.sent@2=stop")
			v.until("the learner is stopped", func() bool { return isStopped(first.Process.Pid) })
			first.strike(syscall.SIGTERM)
			first.strike(syscall.SIGCONT)
			v.ends(first, 1, contract.CauseDrained)
			worker.strike(syscall.SIGKILL)
			v.worker("w1")
			v.ends(v.learner(2, ""), 2, contract.CauseCompleted)
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newTown(t)
			run(t, v)
			if got := v.digest(); got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			v.checkMetrics()
		})
	}
}

// isStopped says whether a process is stopped by a signal.
func isStopped(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	for i := len(data) - 1; i > 0; i-- {
		if data[i] == ')' {
			return i+2 < len(data) && data[i+2] == 'T'
		}
	}
	return false
}

// peak is the most memory that a process had, in KiB.
func peak(t testing.TB, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var most int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &most); n == 1 {
			t.Logf("the learner took %d KiB of memory", most)
			return most
		}
	}
	t.Fatal("the process has no VmHWM")
	return 0
}
