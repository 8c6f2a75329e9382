// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

// fatalReward kills the runner of its pod in the calls whose numbers are in the variable FATAL. The calls of all pods
// are numbered together.
const fatalReward = `
import os, time

def reward(row, reply):
    number, folder = 1, os.environ["CALLS"]
    while True:
        try:
            os.close(os.open(os.path.join(folder, str(number)), os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            number += 1
    if str(number) in os.environ["FATAL"].split():
        os.kill(os.getppid(), 9)
        time.sleep(600)
    return sum(map(ord, reply.text)) % 7
`

// rewardingInPods changes the small run's file so that its reward is a function.
func rewardingInPods(f *contract.RunFile) {
	env := &f.Fixed.Environments[0]
	env.Definition.Reward = &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
		Source: environment.Source{Code: fatalReward}, Processes: 2, Concurrency: 1, TimeoutSeconds: 60,
	}}}
	f.Evaluation = nil
}

// programPods are runners that serve workers over TCP, as pods do. A runner that ends is replaced at another address.
type programPods struct {
	t           testing.TB
	program     string
	dir         string
	env         []string
	credentials contract.ProgramCredentials
	made        atomic.Int64

	mu      sync.Mutex
	running map[string]*exec.Cmd // by address
	stopped bool
	ended   sync.WaitGroup
}

func startProgramPods(t testing.TB, replicas int, env ...string) *programPods {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no code of a user can run")
	}
	program, err := buildRunner()
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := contract.DeriveProgramCredentials("the token of the run", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	p := &programPods{t: t, program: program, dir: t.TempDir(), env: env, credentials: credentials,
		running: map[string]*exec.Cmd{}}
	for range replicas {
		p.start()
	}
	t.Cleanup(func() {
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		p.kill()
		p.ended.Wait()
	})
	return p
}

// start starts a pod, and another pod when it ends.
func (p *programPods) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	address, number := freeport.Address(p.t), p.made.Add(1)
	process := exec.Command(p.program, "--listen", address, "--scratch",
		filepath.Join(p.dir, strconv.FormatInt(number, 10)))
	process.Env = append(append(os.Environ(), p.env...),
		protocol.CertificateVariable+"="+string(p.credentials.Certificate),
		protocol.KeyVariable+"="+string(p.credentials.PrivateKey), protocol.TokenVariable+"="+p.credentials.TokenSHA256())
	if err := process.Start(); err != nil {
		p.t.Error(err)
		return
	}
	p.running[address] = process
	p.ended.Go(func() {
		_ = process.Wait()
		p.mu.Lock()
		delete(p.running, address)
		p.mu.Unlock()
		p.start()
	})
}

// kill kills all pods.
func (p *programPods) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, process := range p.running {
		_ = process.Process.Kill()
	}
}

// lookUp is the name service.
func (p *programPods) lookUp(context.Context, string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.running) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: "pods", IsNotFound: true}
	}
	return slices.Sorted(maps.Keys(p.running)), nil
}

// startWorkerOf starts a worker whose code runs in pods.
func (w *fixture) startWorkerOf(name string, p *programPods, reached func(n int64)) {
	w.t.Helper()
	host := &pythonreward.Host{InheritEnv: true, Logger: w.logger(), Wait: true, Pods: &pythonreward.Pods{
		Name: "pods", Port: contract.ProgramPort, Now: time.Now, TLS: p.credentials.ClientTLS, Token: p.credentials.Token,
		LookUp: p.lookUp,
	}}
	w.t.Cleanup(host.Close)
	w.startRolloutWorkerWith(name, func(c *rollout.Config) {
		c.Environments = registry.Builder{Programs: func(contract.Definition) *pythonreward.Host { return host }}
		c.Endpoint = &countingEndpoint{Endpoint: c.Endpoint, reached: reached}
	})
}

// TestPodsOfProgramsSurvive kills pods of programs between a call and its answer, one by one and all at once. Weights,
// usage, rows and metrics equal an undisturbed run's.
func TestPodsOfProgramsSurvive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*contract.RunFile)
		fatal  string
		kills  []int64 // numbers of samples after which all pods are killed
	}{
		"rewards":  {rewardingInPods, "3 4 30", []int64{20}},
		"episodes": {dueling, "", []int64{15, 16, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := newFixture(t, tc.change)
			undisturbed.startWorkerOf("w0", startProgramPods(t, 1, "CALLS="+t.TempDir(), "FATAL="), func(int64) {})
			want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

			w := newFixture(t, tc.change)
			pods := startProgramPods(t, 2, "CALLS="+t.TempDir(), "FATAL="+tc.fatal)
			var sampled atomic.Int64
			reached := func(int64) {
				if n := sampled.Add(1); slices.Contains(tc.kills, n) {
					time.Sleep(50 * time.Millisecond) // so that a pod that has just begun is killed at work
					pods.kill()
				}
			}
			w.startWorkerOf("w0", pods, reached)
			w.startWorkerOf("w1", pods, reached)
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			got := w.outcome(verdict)
			w.compareWeights(verdict, want)
			w.compareMetrics(want)
			if diff := cmp.Diff(want.usage, got.usage); diff != "" {
				t.Errorf("usage (-undisturbed +got):\n%s", diff)
			}
			if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
				t.Errorf("rows (-undisturbed +got):\n%s", diff)
			}
			if made := pods.made.Load(); made < int64(2+len(tc.kills)) {
				t.Errorf("%d pods were made, want more: none was killed at work", made)
			}
		})
	}
}
