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
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// cuttableListener is a listener that can cut all its connections, like a process that is stopped: it sends nothing
// more, and accepts no connection.
type cuttableListener struct {
	net.Listener
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (c *cuttableListener) Accept() (net.Conn, error) {
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

func (c *cuttableListener) cutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// stopper is a hook that stops a learner at a point, cut off from its workers, until it is resumed.
type stopper struct {
	point    string
	step     int64
	once     sync.Once
	stopped  chan struct{}
	resume   chan struct{}
	listener *cuttableListener
}

func stopAt(point string, step int64) *stopper {
	return &stopper{point: point, step: step, stopped: make(chan struct{}), resume: make(chan struct{})}
}

func (f *stopper) hook(ctx context.Context, _ func() error, point string, step int64) error {
	if point != f.point || (f.step >= 0 && step != f.step) {
		return nil
	}
	f.once.Do(func() {
		f.listener.cutAll()
		close(f.stopped)
		select {
		case <-f.resume:
		case <-ctx.Done():
		}
	})
	return nil
}

// startAndStop starts a learner and waits until it is stopped.
func (w *fixture) startAndStop(number int32, f *stopper) *attempt {
	w.t.Helper()
	a := w.startLearnerOn(number, f.hook, func(l net.Listener) net.Listener {
		f.listener = &cuttableListener{Listener: l}
		return f.listener
	})
	select {
	case <-f.stopped:
	case <-a.done:
		w.t.Fatalf("the learner ended with %s before %s: %s", a.verdict.Cause, f.point, a.verdict.Message)
	case <-time.After(patience):
		w.t.Fatalf("the learner did not reach %s", f.point)
	}
	return a
}

// heartbeat posts a heartbeat of the newest attempt to a learner, as the manager does to every pod there is.
func (w *fixture) heartbeat(a *attempt, newest int32, desired contract.Desired) (contract.HeartbeatReply, error) {
	w.t.Helper()
	return w.post(a, contract.HeartbeatRequest{RunUID: w.file.Run.UID, Attempt: newest, Desired: desired})
}

// post posts a heartbeat to a learner.
func (w *fixture) post(a *attempt, request contract.HeartbeatRequest) (contract.HeartbeatReply, error) {
	w.t.Helper()
	config, err := w.credentials.ClientTLS()
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	client := heartbeat.Client{HTTP: &http.Client{Transport: transport}, Token: w.credentials.ManagerToken}
	return client.Post(w.t.Context(), a.heartbeat, request)
}

// TestStoppedLearnerResumesAfterNextAttempt stops a learner, lets the next attempt finish the run, and resumes the
// first: it ends fenced and changes nothing.
func TestStoppedLearnerResumesAfterNextAttempt(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withTensorBoard)
			w.startWorker("w0", behavior{})
			step := int64(2)
			if point[:5] == "open." {
				step = -1
			}
			f := stopAt(point, step)
			first := w.startAndStop(1, f)
			second := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			close(f.resume)
			// A learner that had looked before it was stopped waits for workers until the manager's heartbeat.
			_, _ = w.heartbeat(first, 2, contract.DesiredRun)
			w.waitFor(first, contract.CauseFenced)
			w.compare(second, want)
			w.checkTensorBoard()
			// Whatever the stopped learner left behind, another attempt finds the run as it was.
			w.compare(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted), want)
		})
	}
}

// TestResumedLearnerSpendsNothing stops a learner before it loads a state, whose optimizer it would check, lets the
// next attempt finish the run, and resumes the first: it makes no request that costs tokens, since no attempt would
// count them.
func TestResumedLearnerSpendsNothing(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"open.claimed", "open.listed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.startWorker("w0", behavior{})
			w.waitFor(w.startLearner(1, w.dieAt("save.answered", 2)), contract.CauseCrashed)
			f := stopAt(point, -1)
			stopped := w.startAndStop(2, f)
			w.checkSame(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted))
			want := w.sim.Stats().Billed
			close(f.resume)
			w.waitFor(stopped, contract.CauseFenced)
			if got := w.sim.Stats().Billed; got != want {
				t.Errorf("the simulator has billed %+v once the resumed learner has ended, want %+v", got, want)
			}
		})
	}
}

// TestTwoStoppedLearnersAndFailedChunk resumes two stopped learners while the third trains.
func TestTwoStoppedLearnersAndFailedChunk(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	w.startWorker("w1", behavior{})
	w.addFaults(fault.Rule{Op: "forward_backward", Occurrence: 5, Do: fault.Fail, Category: "server"})
	first, second := stopAt("save.answered", 1), stopAt("replies.clean", 2)
	a := w.startAndStop(1, first)
	b := w.startAndStop(2, second)
	third := w.startLearner(3, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "sampler.announced" && step == 2 {
			close(first.resume)
			close(second.resume)
		}
		return nil
	})
	w.checkSame(w.waitFor(third, contract.CauseCompleted))
	w.waitFor(a, contract.CauseFenced)
	w.waitFor(b, contract.CauseFenced)
	w.checkSame(w.waitFor(w.startLearner(4, nil), contract.CauseCompleted))
}

// TestAttemptIsClaimedOnce refuses a second process of one attempt.
func TestAttemptIsClaimedOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	w.waitFor(w.startLearner(1, nil), contract.CauseFenced)
}
