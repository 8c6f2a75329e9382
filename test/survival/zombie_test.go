// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// cord is a listener whose connections can all be cut, as those of a process that is stopped: nothing of
// it is heard any more, and nobody new gets through.
type cord struct {
	net.Listener
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (c *cord) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = conn.Close()
		return conn, nil
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cord) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// freezer is a hook that stops a learner at a point, cut off from its workers, until it is thawed.
type freezer struct {
	point  string
	step   int64
	once   sync.Once
	frozen chan struct{}
	thaw   chan struct{}
	cord   *cord
}

func freezeAt(point string, step int64) *freezer {
	return &freezer{point: point, step: step, frozen: make(chan struct{}), thaw: make(chan struct{})}
}

func (f *freezer) hook(ctx context.Context, _ func() error, point string, step int64) error {
	if point != f.point || (f.step >= 0 && step != f.step) {
		return nil
	}
	f.once.Do(func() {
		f.cord.sever()
		close(f.frozen)
		select {
		case <-f.thaw:
		case <-ctx.Done():
		}
	})
	return nil
}

// freeze starts a learner and waits until it is frozen.
func (w *world) freeze(number int32, f *freezer) *attempt {
	w.t.Helper()
	a := w.learnWith(number, f.hook, func(l net.Listener) net.Listener {
		f.cord = &cord{Listener: l}
		return f.cord
	})
	select {
	case <-f.frozen:
	case <-a.done:
		w.t.Fatalf("the learner ended with %s before %s: %s", a.verdict.Cause, f.point, a.verdict.Message)
	case <-time.After(3 * time.Minute):
		w.t.Fatalf("the learner did not come to %s", f.point)
	}
	return a
}

// beat posts a heartbeat of the newest attempt to a learner, as the manager does to every pod there is.
func (w *world) beat(a *attempt, newest int32, desired contract.Desired) (contract.HeartbeatReply, error) {
	w.t.Helper()
	config, err := w.link.ClientTLS()
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	client := contract.HeartbeatClient{HTTP: &http.Client{Transport: transport}, Token: w.link.Token}
	return client.Post(w.t.Context(), a.heartbeat, contract.HeartbeatRequest{RunUID: w.file.Run.UID, Attempt: newest, Desired: desired})
}

// TestAStoppedLearnerGoesOn stops a learner, lets the next attempt finish the run, and lets the first go on:
// it ends fenced and changes nothing.
func TestAStoppedLearnerGoesOn(t *testing.T) {
	want := baseline(t)
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.play("w0", ways{})
			step := int64(2)
			if point[:5] == "open." {
				step = -1
			}
			f := freezeAt(point, step)
			zombie := w.freeze(1, f)
			second := w.end(w.learn(2, nil), contract.CauseCompleted)
			close(f.thaw)
			// One that had looked before it was stopped waits for workers, until the manager tells it.
			_, _ = w.beat(zombie, 2, contract.DesiredRun)
			w.end(zombie, contract.CauseFenced)
			if got := w.weights(second); got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			w.checkMetrics()
			// Whatever the zombie left behind, another attempt finds the run as it was.
			if got := w.weights(w.end(w.learn(3, nil), contract.CauseCompleted)); got != want {
				t.Errorf("after the zombie the final adapter is %s, undisturbed %s", got, want)
			}
			w.checkMetrics()
		})
	}
}

// TestTwoZombiesAndAFailedChunk has two stopped learners go on while the third trains.
func TestTwoZombiesAndAFailedChunk(t *testing.T) {
	w := newWorld(t, nil)
	w.play("w0", ways{})
	w.play("w1", ways{})
	w.script(fault.Rule{Op: "forward_backward", Occurrence: 5, Do: fault.Fail, Category: "server"})
	first, second := freezeAt("save.answered", 1), freezeAt("replies.clean", 2)
	a := w.freeze(1, first)
	b := w.freeze(2, second)
	third := w.learn(3, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "sampler.announced" && step == 2 {
			close(first.thaw)
			close(second.thaw)
		}
		return nil
	})
	w.checkSame(w.end(third, contract.CauseCompleted))
	w.end(a, contract.CauseFenced)
	w.end(b, contract.CauseFenced)
	w.checkSame(w.end(w.learn(4, nil), contract.CauseCompleted))
}

// TestAnAttemptIsClaimedOnce refuses a second process of one attempt.
func TestAnAttemptIsClaimedOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.play("w0", ways{})
	w.end(w.learn(1, nil), contract.CauseCompleted)
	w.end(w.learn(1, nil), contract.CauseFenced)
}
