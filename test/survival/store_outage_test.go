// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// storeOutage begins and ends an outage of a fixture's artifact store.
type storeOutage struct {
	begin, end func()
	// problem is a part of the reason for which the run waits.
	problem string
	// began reports whether the outage has begun; nil if the problem cannot occur before.
	began func() bool
	// collect copies the artifacts to the folder in which the fixture's checks look for them.
	collect func()
	// another prepares the folder of the next learner.
	another func()
}

// storeOutages are the outages of stores that need no privileges. TestVolume has the outages of real volumes.
var storeOutages = map[string]func(t *testing.T, w *fixture) storeOutage{
	"a volume that is away":           volumeAway,
	"a bucket whose key has expired":  expiredKey,
	"a bucket that does not return":   hangingBucket,
	"a bucket that answers with 503s": unavailableBucket,
}

// volumeAway removes the folder of rows.
func volumeAway(t *testing.T, w *fixture) storeOutage {
	rows := filepath.Join(w.artifacts, w.file.Run.UID, "rows")
	move := func(from, to string) func() {
		return func() {
			if err := os.Rename(from, to); err != nil {
				t.Error(err)
			}
		}
	}
	return storeOutage{
		begin: move(rows, rows+".away"), end: move(rows+".away", rows), problem: "no such file or directory",
		collect: func() {}, another: func() {},
	}
}

func expiredKey(t *testing.T, w *fixture) storeOutage {
	return refusingBucket(t, w, http.StatusForbidden,
		"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>",
		"ExpiredToken: The provided token has expired.: correct the keys in the Secret of artifacts.secretRef")
}

func unavailableBucket(t *testing.T, w *fixture) storeOutage {
	return refusingBucket(t, w, http.StatusServiceUnavailable,
		"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>", "SlowDown")
}

// refusingBucket answers all requests with an error during the outage.
func refusingBucket(t *testing.T, w *fixture, status int, body, problem string) storeOutage {
	var away atomic.Bool
	outage := bucketOutage(t, w, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if away.Load() {
				rw.WriteHeader(status)
				_, _ = rw.Write([]byte(body))
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	outage.begin, outage.end, outage.problem = func() { away.Store(true) }, func() { away.Store(false) }, problem
	return outage
}

// hangingBucket answers the requests that it gets during the outage only at the end of the outage.
func hangingBucket(t *testing.T, w *fixture) storeOutage {
	var mu sync.Mutex
	over := make(chan struct{})
	close(over)
	outage := bucketOutage(t, w, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			waits := over
			mu.Unlock()
			<-waits
			next.ServeHTTP(rw, r)
		})
	})
	w.storeSlow = 50 * time.Millisecond
	outage.begin = func() {
		mu.Lock()
		defer mu.Unlock()
		over = make(chan struct{})
	}
	outage.end = func() {
		mu.Lock()
		defer mu.Unlock()
		if !isClosed(over) {
			close(over)
		}
	}
	outage.began = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !isClosed(over)
	}
	t.Cleanup(outage.end)
	outage.problem = "the store takes long to answer" // as on a busy machine before the outage
	return outage
}

func bucketOutage(t *testing.T, w *fixture, change func(http.Handler) http.Handler) storeOutage {
	server := buckettest.Start(t, change)
	w.atURL(server.URL("team/runs"))
	return storeOutage{collect: w.download, another: func() { w.atURL(server.URL("team/runs")) }}
}

// awaitOutage waits until the run reports the outage, in each of several heartbeats.
func (w *fixture) awaitOutage(a *attempt, outage storeOutage) {
	w.t.Helper()
	reported := 0
	w.until("the run reports the outage of its artifact store", func() bool {
		if isClosed(a.done) {
			w.t.Fatalf("the learner ended with %s at step %d while the artifact store takes nothing", a.verdict.Cause,
				a.verdict.Progress.Step)
		}
		reply, err := w.heartbeat(a, 1, contract.DesiredRun)
		found, _ := reply.Problem()
		if err != nil || found.Code != problem.ArtifactsBlocked || !strings.Contains(found.Evidence, outage.problem) ||
			outage.began != nil && !outage.began() {
			return false
		}
		reported++
		return reported >= 20
	})
}

// noStepFrom fails the test if step first or a later step is submitted while the store takes nothing.
func noStepFrom(t *testing.T, first int64, away *atomic.Bool) hook {
	return func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "step.submitted" && step >= first && away.Load() {
			t.Errorf("step %d is submitted while the artifact store takes nothing", step)
		}
		return nil
	}
}

// checkOutage begins an outage of the store once step 1 is committed: the run makes one further step at most, waits,
// says so, and continues to the end of an undisturbed run.
func checkOutage(t *testing.T, w *fixture, outage storeOutage, want outcome) {
	t.Helper()
	w.startWorker("w0", behavior{})
	var away atomic.Bool
	a := w.startLearner(1, inOrder(noStepFrom(t, 3, &away), w.at("covered.sent", 1, then(func() {
		away.Store(true)
		outage.begin()
	}))))
	w.awaitOutage(a, outage)
	away.Store(false)
	outage.end()
	verdict := w.waitFor(a, contract.CauseCompleted)
	outage.collect()
	w.compare(verdict, want)
	if twice := verdict.Progress.Usage.BoughtTwiceTokens; twice != 0 {
		t.Errorf("%d tokens were bought twice, want none", twice)
	}
}

func TestRunWaitsForItsStore(t *testing.T) {
	t.Parallel()
	for name, prepare := range storeOutages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := baseline(t)
			w := newFixture(t, nil)
			checkOutage(t, w, prepare(t, w), want)
		})
	}
}

// TestRunWaitsForItsStoreBetweenStates begins an outage of the store between saved states: no row of a step without a
// saved state can be written.
func TestRunWaitsForItsStoreBetweenStates(t *testing.T) {
	t.Parallel()
	change := func(f *contract.RunFile) { f.Checkpoints.RollingEverySteps = 10 }
	undisturbed := newFixture(t, change)
	undisturbed.startWorker("w0", behavior{})
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	w := newFixture(t, change)
	outage := volumeAway(t, w)
	w.startWorker("w0", behavior{})
	var away atomic.Bool
	a := w.startLearner(1, inOrder(noStepFrom(t, 2, &away), w.at("replies.clean", 1, then(func() {
		away.Store(true)
		outage.begin()
	}))))
	w.awaitOutage(a, outage)
	away.Store(false)
	outage.end()
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
}

// checkDrainBeforeAStep drains a learner during an outage that begins before step 2 does. A store that takes no
// record of the step's maximum cost keeps the step from being submitted.
func checkDrainBeforeAStep(t *testing.T, w *fixture, outage storeOutage, want outcome) {
	t.Helper()
	checkDrain(t, w, outage, want, behavior{}, w.at("covered.sent", 1, then(outage.begin)))
}

// checkDrainWithinAStep drains a learner during an outage that begins once step 2 is submitted and the row of step 1
// is stored. The groups of step 2 wait for that row: a learner may submit them before it has stored the row.
func checkDrainWithinAStep(t *testing.T, w *fixture, outage storeOutage, want outcome) {
	t.Helper()
	stored := make(chan struct{})
	var isFirstStep atomic.Bool
	holds := behavior{wait: func(ctx context.Context, _ int64) {
		if isFirstStep.Load() {
			select {
			case <-stored:
			case <-ctx.Done():
			}
		}
	}}
	checkDrain(t, w, outage, want, holds, inOrder(
		w.at("step.submitted", 1, then(func() { isFirstStep.Store(true) })),
		w.at("covered.sent", 1, then(func() { close(stored) })),
		w.at("step.submitted", 2, then(outage.begin))))
}

// checkDrain drains a learner once it reports an outage. Its verdict says that its state is saved, or, if step 2 was
// submitted, which step is saved and that step 2 is not. The next learner continues from step 1.
func checkDrain(t *testing.T, w *fixture, outage storeOutage, want outcome, of behavior, begins hook) {
	t.Helper()
	const longest = 3 * time.Minute
	w.drainPatience = 20 * time.Millisecond
	worker := w.startWorker("w0", of)
	var submitted atomic.Bool
	a := w.startLearner(1, inOrder(begins, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "step.submitted" && step == 2 {
			submitted.Store(true)
		}
		return nil
	}))
	w.awaitOutage(a, outage)
	a.drain()
	select {
	case <-a.done:
	case <-time.After(longest):
		t.Errorf("the learner drains for more than %s while the store takes nothing", longest)
	}
	verdict := w.waitFor(a, contract.CauseDrained)
	says, problem := "Stopped at a saved state, as asked", ""
	if submitted.Load() {
		says = "Stopped, as asked: the newest saved state is that of step 1; step 2 is not saved and is made again: "
		problem = outage.problem
	}
	if !strings.HasPrefix(verdict.Message, says) || !strings.Contains(verdict.Message, problem) {
		t.Errorf("the verdict says %q, want %q and %q", verdict.Message, says, problem)
	}
	if verdict.Progress.Step != 1 {
		t.Errorf("the learner ended at step %d, want 1", verdict.Progress.Step)
	}
	outage.end()
	outage.another()
	verdict = w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	outage.collect()
	w.compare(verdict, want)
	if verdict.Progress.FromStep != 1 || worker.sampledTwice() > 0 {
		t.Errorf("the next learner began at step %d, and %d groups were sampled twice; want step 1 and none",
			verdict.Progress.FromStep, worker.sampledTwice())
	}
}

// drains are the checks of a learner that drains during an outage, keyed by when the outage begins.
var drains = map[string]func(*testing.T, *fixture, storeOutage, outcome){
	"before a step": checkDrainBeforeAStep, "within a step": checkDrainWithinAStep,
}

func TestDrainWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, prepare := range storeOutages {
		for when, check := range drains {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				want := baseline(t)
				w := newFixture(t, nil)
				check(t, w, prepare(t, w), want)
			})
		}
	}
}

// TestDrainBeforeClaimsAreKnown drains a learner when a state is saved, the next step is submitted, and the store does
// not say whether a higher attempt has begun.
func TestDrainBeforeClaimsAreKnown(t *testing.T) {
	t.Parallel()
	want := baselineWithLag(t, 1, behavior{})
	w, release := newFixtureWithHeldSave(t, 1)
	outage := expiredKey(t, w)
	w.drainPatience = 20 * time.Millisecond
	w.startWorker("w0", behavior{})
	a := w.startLearner(1, inOrder(w.at("step.submitted", 3, then(release)), w.at("save.answered", 2, then(outage.begin))))
	w.awaitOutage(a, outage)
	a.drain()
	const says = "Stopped, as asked: the newest saved state is that of step 2; step 3 is not saved and is made again: "
	if verdict := w.waitFor(a, contract.CauseDrained); !strings.HasPrefix(verdict.Message, says) {
		t.Errorf("the verdict says %q, want %q", verdict.Message, says)
	}
	outage.end()
	outage.another()
	verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	outage.collect()
	w.compare(verdict, want)
	if verdict.Progress.FromStep != 2 {
		t.Errorf("the next learner began at step %d, want 2", verdict.Progress.FromStep)
	}
}

// TestDrainAfterAFailedSaveBesideAStep drains a learner when a step is submitted and the save before it has failed: the
// state of the version is not saved, and the model no longer has its weights.
func TestDrainAfterAFailedSaveBesideAStep(t *testing.T) {
	t.Parallel()
	want := baselineWithLag(t, 1, behavior{})
	w, release := newFixtureWithHeldSave(t, 1)
	w.addFaults(fault.Rule{Op: "save_weights", Name: "-s000002-", Do: fault.Fail})
	w.startWorker("w0", behavior{})
	var a *attempt
	started := make(chan struct{})
	a = w.startLearner(1, w.at("step.submitted", 3, then(func() {
		<-started
		a.drain()
		release()
	})))
	close(started)
	const says = "Stopped, as asked: the newest saved state is that of step 1; steps 2 to 3 are not saved and are " +
		"made again: "
	if verdict := w.waitFor(a, contract.CauseDrained); !strings.HasPrefix(verdict.Message, says) {
		t.Errorf("the verdict says %q, want %q", verdict.Message, says)
	}
	w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
}
