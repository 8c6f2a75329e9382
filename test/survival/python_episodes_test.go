// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// duel is an episode in which two players talk at the same time, each continuing its earlier replies, and a judge is
// asked the same question twice.
const duel = `
import asyncio

async def talk(row, policy, key):
    messages, said = [{"role": "user", "content": row["prompt"]}], 0
    for _ in range(2):
        reply = await policy.chat(messages, role="player", key=key)
        messages = messages + reply.messages + [{"role": "user", "content": "And?"}]
        said += sum(map(ord, reply.text)) % 7
    return said

async def episode(row, policy, seed):
    first, second = await asyncio.gather(talk(row, policy, "b"), talk(row, policy, "a"))
    judged = [await policy.chat("Who?", role="judge", key="judge") for _ in range(2)]
    verdict = sum(len(reply.text) for reply in judged) % 3
    return {"rewards": {"b": first - second, "a": second - first, "judge": verdict}, "correct": first > second}
`

// dueling changes the small run's file so that its episodes are code.
func dueling(f *contract.RunFile) {
	env := &f.Fixed.Environments[0]
	env.Definition.Reward = nil
	env.Definition.Interaction = &environment.Interaction{Python: &environment.PythonEpisodes{
		Roles: []string{"judge", "player"}, Source: environment.Source{Code: duel}, Processes: 2, Concurrency: 16,
	}}
	env.Limits.Turns = 2
	f.Evaluation = nil
}

// buildRunner builds the runner's program once.
var buildRunner = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "runner")
	build := exec.Command("go", "build", "-o", program, "../../cmd/runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return program, build.Run()
})

// runnerProcess is a runner that a worker calls.
type runnerProcess struct {
	t       testing.TB
	program string
	dir     string

	mu      sync.Mutex
	process *exec.Cmd
}

func startRunner(t testing.TB) *runnerProcess {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no code of a user can run")
	}
	program, err := buildRunner()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "duel") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	r := &runnerProcess{t: t, program: program, dir: dir}
	r.start()
	t.Cleanup(func() {
		r.kill()
		os.RemoveAll(dir)
	})
	return r
}

func (r *runnerProcess) socket() string { return filepath.Join(r.dir, "runner.sock") }

func (r *runnerProcess) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process = exec.Command(r.program, "--socket", r.socket(), "--scratch", filepath.Join(r.dir, "scratch"))
	if err := r.process.Start(); err != nil {
		r.t.Error(err)
	}
}

func (r *runnerProcess) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

// countingEndpoint calls a function with the number of each sample that was answered.
type countingEndpoint struct {
	rollout.Endpoint
	answered atomic.Int64
	reached  func(n int64)
}

// Sample implements rollout.Endpoint.
func (c *countingEndpoint) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	result, err := c.Endpoint.Sample(ctx, request)
	if err == nil {
		c.reached(c.answered.Add(1))
	}
	return result, err
}

// startDuelingWorker starts a worker whose code runs below a runner.
func (w *fixture) startDuelingWorker(name string, r *runnerProcess, reached func(n int64)) (kill func()) {
	w.t.Helper()
	host := &pythonreward.Host{Socket: r.socket(), InheritEnv: true, Logger: w.logger()}
	w.t.Cleanup(host.Close)
	return w.startRolloutWorkerWith(name, func(c *rollout.Config) {
		c.Environments = registry.Builder{Programs: func(contract.Definition) *pythonreward.Host { return host }}
		c.Endpoint = &countingEndpoint{Endpoint: c.Endpoint, reached: reached}
	})
}

// TestEpisodesOfCodeSurvive kills the runner of a worker, the worker and the learner between requests of episodes and
// their answers. Weights, rows and metrics equal an undisturbed run's.
func TestEpisodesOfCodeSurvive(t *testing.T) {
	t.Parallel()
	undisturbed := newFixture(t, dueling)
	undisturbed.startDuelingWorker("w0", startRunner(t), func(int64) {})
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

	w := newFixture(t, dueling)
	r := startRunner(t)
	reached := make(chan struct{})
	kill := w.startDuelingWorker("w0", r, func(n int64) {
		switch n {
		case 15:
			r.kill()
			r.start()
		case 60:
			close(reached)
		}
	})
	first := w.startLearner(1, w.dieAt("step.submitted", 2))
	<-reached
	kill()
	w.startDuelingWorker("w1", startRunner(t), func(int64) {})
	<-first.done
	w.compareWeights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
	w.compareMetrics(want)
	if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
		t.Errorf("rows (-undisturbed +got):\n%s", diff)
	}
}
