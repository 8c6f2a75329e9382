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
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

// programs are built once.
var programs struct {
	once sync.Once
	dir  string
	err  error
}

func build(t testing.TB) string {
	t.Helper()
	programs.once.Do(func() {
		if programs.dir, programs.err = os.MkdirTemp("", "survival"); programs.err != nil {
			return
		}
		// They have the build tags of the image, so that they take as much memory as in the image, and the fault points.
		tags, err := os.ReadFile("../../hack/build-tags")
		if err != nil {
			programs.err = err
			return
		}
		command := exec.Command("go", "build", "-tags", strings.TrimSpace(string(tags))+",faults", "-ldflags", "-s -w", "-o",
			programs.dir,
			"./cmd/learner", "./cmd/rollout", "./cmd/tinkersim")
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

// processFixture is a run whose parts are processes, behind a proxy that forwards to the newest learner.
type processFixture struct {
	*fixture
	bin, dir, sim string
	proxy         net.Listener
}

func newProcessFixture(t *testing.T) *processFixture {
	t.Helper()
	w := newFixture(t, nil)
	sim := freeport.Address(t)
	w.url = "http://" + sim
	f := newProcessFixtureOf(t, w)
	f.sim = sim
	f.startSim()
	return f
}

// newProcessFixtureOf prepares processes for a run whose endpoint is at the fixture's URL.
func newProcessFixtureOf(t testing.TB, w *fixture) *processFixture {
	t.Helper()
	f := &processFixture{fixture: w, bin: build(t), dir: t.TempDir()}
	f.proxy = f.listen()
	t.Cleanup(func() { _ = f.proxy.Close() })
	go f.forward()
	f.file.Fixed.BaseURL, f.file.LearnerAddress = f.url, f.proxy.Addr().String()
	var err error
	if f.file.SpecDigest, err = contract.SpecDigest(f.file.Fixed); err != nil {
		t.Fatal(err)
	}
	if f.client, err = client.New(client.Config{BaseURL: f.url, APIKey: apiKey}); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		contract.TokenKey: []byte(f.credentials.Token), contract.ManagerTokenKey: []byte(f.credentials.ManagerToken),
		contract.CertificateKey: f.credentials.Certificate, contract.PrivateKeyKey: f.credentials.PrivateKey,
	} {
		f.write(filepath.Join(f.dir, name), content)
	}
	return f
}

func (f *processFixture) write(path string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// forward works like the Service: each new connection goes to the newest learner.
func (f *processFixture) forward() {
	for {
		from, err := f.proxy.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := f.dial(context.Background(), "")
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

// process is a running program.
type process struct {
	*exec.Cmd
	done chan struct{}
	code int
}

func (f *processFixture) start(name string, env []string, args ...string) *process {
	f.t.Helper()
	p := &process{Cmd: exec.Command(filepath.Join(f.bin, name), args...), done: make(chan struct{})}
	p.Env = append(os.Environ(), append(env, "TINKER_API_KEY="+apiKey, "POD_IP=127.0.0.1")...)
	if os.Getenv("SURVIVAL_LOG") != "" {
		p.Stderr = os.Stderr
	}
	if err := p.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		err := p.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			p.code = exit.ExitCode()
		}
	}()
	f.t.Cleanup(func() { p.signal(syscall.SIGKILL); <-p.done })
	return p
}

// signal sends a signal to the process itself.
func (p *process) signal(signal syscall.Signal) { _ = p.Process.Signal(signal) }

func (f *processFixture) startSim() *process {
	f.t.Helper()
	p := f.start("tinkersim", nil, "--listen", f.sim, "--data-dir", filepath.Join(f.dir, "sim"), "--api-key", apiKey)
	f.until("the simulator answers", func() bool {
		select {
		case <-p.done:
			f.t.Fatalf("the simulator ended with code %d", p.code)
		default:
		}
		response, err := http.Get(f.url + "/api/v1/healthz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// until waits until the condition holds, and fails the test if it does not within patience.
func (f *processFixture) until(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("timed out before %s", what)
		}
	}
}

func (f *processFixture) runFile(attempt int32) string {
	f.t.Helper()
	file := f.file
	file.Attempt = attempt
	encoded, err := contract.EncodeRunFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.dir, fmt.Sprintf("run-%d.json", attempt))
	f.write(path, encoded)
	return path
}

// startLearnerProcess starts a learner, with a fault if one is given, and makes the proxy forward to it.
func (f *processFixture) startLearnerProcess(attempt int32, fault string) *process {
	f.t.Helper()
	f.mu.Lock()
	f.address = freeport.Address(f.t)
	f.mu.Unlock()
	return f.start("learner", []string{"TINKER_OPERATOR_FAULT=" + fault, fmt.Sprintf("POD_NAME=learner-%d", attempt)},
		"--run-file", f.runFile(attempt), "--credentials-dir", f.dir, "--exchange-listen", f.address,
		"--heartbeat-listen", freeport.Address(f.t), "--termination-log", f.log(attempt), "--data-root", f.data)
}

func (f *processFixture) log(attempt int32) string {
	return filepath.Join(f.dir, fmt.Sprintf("termination-%d", attempt))
}

func (f *processFixture) startWorkerProcess(name string) *process {
	f.t.Helper()
	return f.start("rollout", []string{"POD_NAME=" + name}, "--run-file", f.runFile(1), "--credentials-dir", f.dir,
		"--spill-dir", f.t.TempDir(), "--health-listen", "")
}

// waitForExit waits for a learner and checks exit code and verdict.
func (f *processFixture) waitForExit(p *process, attempt int32, want contract.Cause) contract.Verdict {
	f.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		f.t.Fatalf("learner %d did not end; it should with %s", attempt, want)
	}
	data, err := os.ReadFile(f.log(attempt))
	if err != nil {
		f.t.Fatal(err)
	}
	verdict, err := contract.DecodeVerdict(string(data))
	if err != nil {
		f.t.Fatal(err)
	}
	if verdict.Cause != want || p.code != want.ExitCode() {
		f.t.Fatalf("learner %d ended with %s (%s) and code %d, want %s and %d",
			attempt, verdict.Cause, verdict.Message, p.code, want, want.ExitCode())
	}
	return verdict
}

// digest returns the digest of the adapter in the newest state.
func (f *processFixture) digest() string {
	f.t.Helper()
	for c, err := range f.client.Checkpoints(f.t.Context()) {
		if err != nil {
			f.t.Fatal(err)
		}
		path, err := tinker.ParsePath(c.TinkerPath)
		if err == nil && path.Kind == tinker.KindState && path.Name[9:17] == fmt.Sprintf("-s%06d",
			f.file.Fixed.Algorithm.Steps)[:8] {
			return f.archive(c.TinkerPath)
		}
	}
	f.t.Fatal("there is no final state")
	return ""
}

// TestProcesses runs the other tests' scenarios with processes and signals.
func TestProcesses(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startRolloutWorker("w0")
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	cases := map[string]func(t *testing.T, f *processFixture){
		"without faults": func(_ *testing.T, f *processFixture) {
			f.startWorkerProcess("w0")
			p := f.startLearnerProcess(1, "retire.before@3=stop")
			f.until("the learner is all but done", func() bool { return isStopped(p.Process.Pid) })
			if most := peak(f.t, p.Process.Pid); most > 64<<10 {
				f.t.Errorf("the learner took %d KiB of memory, more than 64 MiB", most)
			}
			p.signal(syscall.SIGCONT)
			f.waitForExit(p, 1, contract.CauseCompleted)
		},
		"learners are killed": func(_ *testing.T, f *processFixture) {
			f.startWorkerProcess("w0")
			for i, fault := range []string{"open.saved=kill", "row.written@1=kill", "save.submitted@2=kill",
				"covered.sent@3=kill"} {
				<-f.startLearnerProcess(int32(i+1), fault).done
			}
			f.waitForExit(f.startLearnerProcess(5, ""), 5, contract.CauseCompleted)
		},
		"a worker and the learner are killed": func(_ *testing.T, f *processFixture) {
			worker := f.startWorkerProcess("w0")
			<-f.startLearnerProcess(1, "sampler.announced@2=kill").done
			worker.signal(syscall.SIGKILL)
			f.startWorkerProcess("w1")
			f.waitForExit(f.startLearnerProcess(2, ""), 2, contract.CauseCompleted)
		},
		"a learner is stopped and resumes": func(t *testing.T, f *processFixture) {
			f.startWorkerProcess("w0")
			first := f.startLearnerProcess(1, "save.answered@2=stop")
			f.until("the first learner is stopped", func() bool { return isStopped(first.Process.Pid) })
			f.waitForExit(f.startLearnerProcess(2, ""), 2, contract.CauseCompleted)
			first.signal(syscall.SIGCONT)
			f.waitForExit(first, 1, contract.CauseFenced)
		},
		"a learner is terminated": func(_ *testing.T, f *processFixture) {
			worker := f.startWorkerProcess("w0")
			first := f.startLearnerProcess(1, "covered.sent@2=stop")
			f.until("the learner is stopped", func() bool { return isStopped(first.Process.Pid) })
			first.signal(syscall.SIGTERM)
			first.signal(syscall.SIGCONT)
			f.waitForExit(first, 1, contract.CauseDrained)
			worker.signal(syscall.SIGKILL)
			f.startWorkerProcess("w1")
			f.waitForExit(f.startLearnerProcess(2, ""), 2, contract.CauseCompleted)
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newProcessFixture(t)
			run(t, f)
			if got := f.digest(); got != want.adapter {
				t.Errorf("final adapter is %s, undisturbed %s", got, want.adapter)
			}
			f.compareMetrics(want)
		})
	}
}

// isStopped reports whether a process is stopped by a signal.
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

// peak returns the peak memory of a process in KiB.
func peak(t testing.TB, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var most int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &most); n == 1 {
			t.Logf("the process took %d KiB of memory", most)
			return most
		}
	}
	t.Fatal("the process has no VmHWM")
	return 0
}
