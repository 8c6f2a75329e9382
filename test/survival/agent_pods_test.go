// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
)

// agentPods are pods of agents. Workers reach each pod through a proxy, which can break connections.
type agentPods struct {
	*programPods

	mu      sync.Mutex
	proxies map[string]*podProxy // by the address of the runner
	streams atomic.Int64         // number of streams that were cut
}

func startAgentPods(t testing.TB, replicas int) *agentPods {
	t.Helper()
	p := &agentPods{programPods: startProgramPods(t, replicas), proxies: map[string]*podProxy{}}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, proxy := range p.proxies {
			_ = proxy.Close()
		}
	})
	return p
}

func (p *agentPods) asWorkersSee() *pythonreward.Pods {
	return &pythonreward.Pods{Name: "pods", Port: contract.ProgramPort, Now: time.Now, TLS: p.credentials.ClientTLS,
		Token: p.credentials.Token, LookUp: p.lookUp}
}

// lookUp is the name service, which returns the addresses of the proxies.
func (p *agentPods) lookUp(ctx context.Context, name string) ([]string, error) {
	runners, err := p.programPods.lookUp(ctx, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	for _, runner := range runners {
		if p.proxies[runner] == nil {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			p.proxies[runner] = &podProxy{Listener: listener, to: runner}
			go p.proxies[runner].forward()
		}
		found = append(found, p.proxies[runner].Addr().String())
	}
	return found, nil
}

// cutStreams breaks all connections that carry the bytes of agents.
func (p *agentPods) cutStreams() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, proxy := range p.proxies {
		p.streams.Add(proxy.cut())
	}
}

// podProxy forwards connections to the runner of a pod. The oldest one is the connection of a worker; all others carry
// the bytes of agents.
type podProxy struct {
	net.Listener
	to string

	mu    sync.Mutex
	pairs [][2]*net.TCPConn
}

func (p *podProxy) forward() {
	for {
		conn, err := p.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = conn.Close()
			continue
		}
		p.add(conn.(*net.TCPConn), to.(*net.TCPConn))
	}
}

func (p *podProxy) add(worker, runner *net.TCPConn) {
	pair := [2]*net.TCPConn{worker, runner}
	p.mu.Lock()
	p.pairs = append(p.pairs, pair)
	p.mu.Unlock()
	var both sync.WaitGroup
	for from, to := range map[*net.TCPConn]*net.TCPConn{worker: runner, runner: worker} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.CloseWrite()
		})
	}
	go func() {
		both.Wait()
		_, _ = worker.Close(), runner.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, other := range p.pairs {
			if other == pair {
				p.pairs = append(p.pairs[:i:i], p.pairs[i+1:]...)
				return
			}
		}
	}()
}

// cut resets the streams, and returns their number.
func (p *podProxy) cut() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pair := range p.pairs[min(1, len(p.pairs)):] {
		for _, conn := range pair {
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
	}
	return int64(max(0, len(p.pairs)-1))
}

// TestAgentsInPodsSurvive plays agents in pods of their own, and ends the pods, the connections between agents and
// gateway, the worker, its pod and the learner after some of the replies. Weights, rows, metrics and purchases equal an
// undisturbed run's with agents beside their worker.
func TestAgentsInPodsSurvive(t *testing.T) {
	t.Parallel()
	undisturbed := playAgents(t)
	for name, tc := range map[string]struct {
		pods, cut, worker, pod []int64
		learner                []int64
	}{
		"nothing":                  {},
		"the pods of the agents":   {pods: []int64{7, 48}},
		"the connections":          {cut: []int64{3, 20, 21, 50}},
		"the worker":               {worker: []int64{2, 60}},
		"all of them in a row":     {pods: []int64{9, 50}, cut: []int64{15, 55}, worker: []int64{21}, pod: []int64{35}},
		"the learner and the pods": {pods: []int64{40}, cut: []int64{10}, learner: []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, researching)
			pods := startAgentPods(t, 2)
			d := &agentDeaths{fixture: w, runner: tc.pods, cut: tc.cut, worker: tc.worker, pod: tc.pod}
			d.next(agentWorker{name: "w0", disk: t.TempDir(), pods: pods})
			t.Cleanup(d.stop)
			for i, step := range tc.learner {
				<-w.startLearner(int32(i+1), w.dieAt("row.written", step)).done
			}
			verdict := w.waitFor(w.startLearner(int32(len(tc.learner)+1), nil), contract.CauseCompleted)
			d.expect(len(tc.pods) + len(tc.cut) + len(tc.worker) + len(tc.pod))
			learnerDied := len(tc.learner) > 0
			undisturbed.compareWith(w, verdict, learnerDied, learnerDied && len(tc.worker)+len(tc.pod) > 0)
			if made := pods.made.Load(); made < int64(2+len(tc.pods)) {
				t.Errorf("%d pods were made, want more: none was killed", made)
			}
			if len(tc.cut) > 0 && pods.streams.Load() == 0 {
				t.Error("no connection of an agent was open when they were cut")
			}
		})
	}
}
