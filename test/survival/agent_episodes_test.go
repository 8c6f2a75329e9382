// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// researcher is an agent that speaks HTTP as the services' clients do: it asks two helpers at the same time, and
// continues with their replies.
const researcher = `
import asyncio, json, urllib.request

def ask(base_url, messages):
    body = json.dumps({"model": "policy", "messages": messages}).encode()
    request = urllib.request.Request(base_url + "/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)["choices"][0]["message"]

async def agent(task, base_url):
    async def helper(name):
        messages = [{"role": "user", "content": "You are helper %s. %s" % (name, task["prompt"])}]
        for _ in range(2):
            messages.append(await asyncio.to_thread(ask, base_url, messages))
            messages.append({"role": "user", "content": "Go on."})
        return messages[-2]["content"]
    said = await asyncio.gather(helper("a"), helper("b"))
    reply = await asyncio.to_thread(ask, base_url, task["messages"] + [{"role": "user", "content": " ".join(said)}])
    return {"reward": sum(map(ord, reply["content"])) % 7, "words": len(reply["content"].split())}
`

// researching changes the small run's file so that an agent plays the episodes.
func researching(f *contract.RunFile) {
	env := &f.Fixed.Environments[0]
	env.Definition.Reward = nil
	env.Definition.Interaction = &environment.Interaction{Agent: &environment.Agent{
		Python:    &environment.AgentFunction{Source: environment.Source{Code: researcher}},
		Processes: 2, Concurrency: 16, Reward: environment.AgentReward{From: environment.RewardFromAgent},
	}}
	env.Limits.Turns = 2
	// The sandbox of a test machine may have no Landlock.
	env.Definition.Execution = &contract.Execution{FunctionImage: environment.FunctionImage{
		Isolation: &environment.Isolation{Minimum: environment.IsolationProcess}}}
	f.Evaluation = nil
}

// agentWorker is a worker whose agents run below a runner, in a pod with a disk, or in pods of their own.
type agentWorker struct {
	name, disk string
	runner     *runnerProcess
	pods       *agentPods
}

func (w *fixture) newAgentWorker(name string) agentWorker {
	return agentWorker{name: name, disk: w.t.TempDir(), runner: startRunner(w.t)}
}

// in returns a worker of the same kind in a new pod.
func (a agentWorker) in(w *fixture, name string) agentWorker {
	if a.pods != nil {
		return agentWorker{name: name, disk: w.t.TempDir(), pods: a.pods}
	}
	return w.newAgentWorker(name)
}

// host is where its agents run.
func (a agentWorker) host() *pythonreward.Host {
	if a.pods != nil {
		return &pythonreward.Host{InheritEnv: true, Pods: a.pods.asWorkersSee()}
	}
	return &pythonreward.Host{Socket: a.runner.socket(), InheritEnv: true}
}

// endAgents kills the runner with its agents, and starts another runner.
func (a agentWorker) endAgents() {
	if a.pods != nil {
		a.pods.kill()
		return
	}
	a.runner.kill()
	a.runner.start()
}

// startAgentWorker starts the worker, which finds the files that an earlier worker has left on its disk.
func (w *fixture) startAgentWorker(a agentWorker, reached func(n int64)) (kill func()) {
	w.t.Helper()
	keep, err := groupstore.Open(groupstore.Config{Dir: a.disk, Version: w.file.Version, MemoryBytes: 1 << 24,
		DiskBytes: 1 << 24, Logger: w.logger()})
	if err != nil {
		w.t.Fatal(err)
	}
	host := a.host()
	host.Logger = w.logger()
	w.t.Cleanup(host.Close)
	return w.startRolloutWorkerWith(a.name, func(c *rollout.Config) {
		c.Judges = teachersOf()
		c.Environments = registry.Builder{Gateway: setup.Gateway(w.logger()),
			Agents: func(contract.Definition) *pythonreward.Host { return host }, Frozen: c.Judges.Frozen}
		c.Endpoint = &countingEndpoint{Endpoint: c.Endpoint, reached: reached}
		c.Groups = keep
	})
}

// agentsRun is a run in which no process dies.
type agentsRun struct {
	*fixture
	want   outcome
	billed stats.Billed
	// replies counts the replies of the endpoint, and points counts the fault points that the learner has passed.
	replies, points int64
}

// playAgents plays a run in which no process dies.
func playAgents(t *testing.T) agentsRun {
	t.Helper()
	var replies, points atomic.Int64
	run := agentsRun{fixture: newFixture(t, researching)}
	run.startAgentWorker(run.newAgentWorker("w0"), func(int64) { replies.Add(1) })
	verdict := run.waitFor(run.startLearner(1, func(context.Context, func() error, string, int64) error {
		points.Add(1)
		return nil
	}), contract.CauseCompleted)
	run.want, run.billed = run.outcome(verdict), run.sim.Stats().Billed
	run.replies, run.points = replies.Load(), points.Load()
	if len(run.rows()) == 0 || run.billed.ForwardBackwardTokens == 0 {
		t.Fatalf("the undisturbed run has %d rows and %+v", len(run.rows()), run.billed)
	}
	return run
}

// compareWith checks that a run in which processes died has the weights, metrics, rows and purchases of the
// undisturbed run. unlisted says that a part of the usage may be unconfirmed: the tokens that a worker used between
// its last list of groups and its death, which are up to two seconds apart.
func (r agentsRun) compareWith(w *fixture, verdict contract.Verdict, learnerDied, unlisted bool) {
	w.t.Helper()
	w.compareWeights(verdict, r.want)
	w.compareMetrics(r.want)
	if diff := cmp.Diff(r.goldenRows(), w.goldenRows()); diff != "" {
		w.t.Errorf("rows (-undisturbed +got):\n%s", diff)
	}
	got, used := w.sim.Stats().Billed, w.outcome(verdict).usage
	isBill := used.PromptTokens == got.PromptTokens && used.SampledTokens == got.SampledTokens
	isBelow := used.PromptTokens <= got.PromptTokens && used.SampledTokens <= got.SampledTokens &&
		used.PromptTokens+used.SampledTokens+used.UnconfirmedTokens >= got.PromptTokens+got.SampledTokens
	if !isBelow || !unlisted && !isBill {
		w.t.Errorf("the usage is %+v, and the bill %+v", used, got)
	}
	// Requests that are open when a learner dies may be asked again.
	if !learnerDied && (got.PromptTokens != r.billed.PromptTokens || got.SampledTokens != r.billed.SampledTokens) {
		w.t.Errorf("bought %+v, want the samples of %+v", got, r.billed)
	}
}

// TestAgentsSurvive kills the runner with its agents, the worker, the worker with its disk, and the learner after some
// of the replies, and checks that weights, rows and purchases equal an undisturbed run's.
func TestAgentsSurvive(t *testing.T) {
	t.Parallel()
	undisturbed := playAgents(t)
	for name, tc := range map[string]struct {
		runner, worker, pod []int64
		learner             []int64
	}{
		"the agents":           {runner: []int64{7, 48}},
		"the worker":           {worker: []int64{2, 60}},
		"the worker's pod":     {pod: []int64{17, 60}},
		"the learner":          {learner: []int64{1, 2}},
		"all of them in a row": {runner: []int64{9, 50}, worker: []int64{21, 64}, pod: []int64{35}, learner: []int64{2}},
		"one after the other":  {runner: []int64{5}, worker: []int64{6}, pod: []int64{7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, researching)
			d := &agentDeaths{fixture: w, runner: tc.runner, worker: tc.worker, pod: tc.pod}
			d.next(w.newAgentWorker("w0"))
			t.Cleanup(d.stop)
			for i, step := range tc.learner {
				<-w.startLearner(int32(i+1), w.dieAt("row.written", step)).done
			}
			verdict := w.waitFor(w.startLearner(int32(len(tc.learner)+1), nil), contract.CauseCompleted)
			d.expect(len(tc.runner) + len(tc.worker) + len(tc.pod))
			learnerDied := len(tc.learner) > 0
			undisturbed.compareWith(w, verdict, learnerDied, learnerDied && len(tc.worker)+len(tc.pod) > 0)
		})
	}
}

// agentDeaths ends processes after given numbers of replies of the endpoint, counted over all workers.
type agentDeaths struct {
	*fixture
	runner, worker, pod []int64
	// cut has the numbers of replies after which the connections between agents and gateway break.
	cut      []int64
	answered atomic.Int64
	deaths   atomic.Int64
	dying    sync.WaitGroup

	mu      sync.Mutex
	current agentWorker
	kill    func()
	stopped bool
}

func (d *agentDeaths) next(worker agentWorker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(worker)
}

// begin starts the process of a worker. The lock is held.
func (d *agentDeaths) begin(worker agentWorker) {
	d.current = worker
	d.kill = d.startAgentWorker(worker, func(int64) {
		n := d.answered.Add(1)
		for _, deaths := range []struct {
			at []int64
			do func()
		}{{d.runner, d.endRunner}, {d.worker, d.endWorker}, {d.pod, d.endPod}, {d.cut, d.cutStreams}} {
			for _, at := range deaths.at {
				if at == n {
					d.dying.Go(deaths.do) // Not here: it may end the process that receives this reply.
				}
			}
		}
	})
}

func (d *agentDeaths) end(replace func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	replace()
	d.deaths.Add(1)
}

func (d *agentDeaths) endRunner() {
	d.end(func() { d.current.endAgents() })
}

func (d *agentDeaths) cutStreams() {
	d.end(func() { d.current.pods.cutStreams() })
}

func (d *agentDeaths) endWorker() {
	d.end(func() {
		d.kill()
		d.begin(d.current)
	})
}

func (d *agentDeaths) endPod() {
	d.end(func() {
		d.kill()
		d.begin(d.current.in(d.fixture, d.current.name+"x"))
	})
}

// expect waits for the deaths that have begun, and checks their number.
func (d *agentDeaths) expect(deaths int) {
	d.t.Helper()
	d.dying.Wait()
	if n := d.deaths.Load(); n != int64(deaths) {
		d.t.Errorf("got %d deaths, want %d", n, deaths)
	}
}

func (d *agentDeaths) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
}
