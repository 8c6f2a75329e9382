// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/broker/share"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// endpointKey is the key of the runs' tokens, which is derived from the manager key. anotherEndpointKey is the
// endpoint key of an installation with another manager key.
var endpointKey, anotherEndpointKey = bytes.Repeat([]byte{9}, 32), bytes.Repeat([]byte{8}, 32)

// brokered is a run behind a broker, beside another team's run.
type brokered struct {
	*fixture
	dir string
	// meter is the current meter, and usage the folder of its records. meters are all meters that were opened.
	meter  *meter.Meter
	usage  string
	meters []*meter.Meter
	// ahead is the number of minutes by which the clocks of broker and meter are ahead.
	ahead   atomic.Int64
	server  *httptest.Server
	current atomic.Pointer[broker.Broker]
	other   broker.Run
	// tokenKey is the key of the runs' tokens.
	tokenKey []byte
}

// newBrokered prepares the small run so that it reaches the simulator only through a broker.
func newBrokered(t *testing.T) *brokered {
	t.Helper()
	b := &brokered{fixture: newFixture(t, nil), dir: t.TempDir(), tokenKey: endpointKey,
		other: broker.Run{Owner: broker.Owner{UID: "other", Namespace: "elsewhere"}}}
	b.open()
	b.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.current.Load().ServeHTTP(w, r)
	}))
	b.server.EnableHTTP2 = true
	b.server.StartTLS()
	b.http = b.server.Client()
	t.Cleanup(func() {
		b.server.CloseClientConnections()
		b.server.Close()
		b.current.Load().Close()
		for _, opened := range b.meters {
			opened.Close()
		}
	})
	b.front = b.server.URL
	b.takeToken()
	b.file.Fixed.BaseURL = b.front
	b.file.Capabilities.BaseURL = b.front
	return b
}

// takeToken sets the run's key to the token by which the broker knows the run.
func (b *brokered) takeToken() {
	b.t.Helper()
	b.key = contract.RunToken(b.tokenKey, b.file.Run.UID)
	var err error
	if b.client, err = client.New(client.Config{BaseURL: b.front, APIKey: b.key, HTTP: b.http}); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a broker on the files in dir, as the next process does.
func (b *brokered) open() {
	b.t.Helper()
	b.openMeter()
	gate := share.New(share.Config{})
	opened, err := broker.Open(broker.Config{Endpoint: "shared", BaseURL: b.url, APIKey: apiKey, TokenKey: b.tokenKey,
		Dir: b.dir, Meter: b.meter, Gate: gate, Now: b.now, Logger: b.logger(), Namespace: "operator",
		ClientVersion: version.String()})
	if err != nil {
		b.t.Fatal(err)
	}
	run := b.file.Run
	err = opened.Apply(endpoint.Settings{
		BaseURL: b.url, Limits: endpoint.Limits{RequestsPerSecond: 1000, UnfinishedSamples: 1000},
		Runs: []endpoint.Run{
			{UID: run.UID, Namespace: run.Namespace, Name: run.Name, Former: b.file.ResumeFrom,
				Model: b.file.Fixed.Model.Name, Weight: 1},
			{UID: b.other.UID, Namespace: b.other.Namespace, Model: b.file.Fixed.Model.Name, Weight: 1},
		},
	}, apiKey, b.tokenKey, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.current.Store(opened)
}

// die ends the broker as a crash does: its requests break off, and the next process has only the files on the disk.
func (b *brokered) die() {
	b.t.Helper()
	b.current.Load().Close()
	b.server.CloseClientConnections()
	b.open()
}

// roll ends the broker as a roll-out does.
func (b *brokered) roll() {
	b.t.Helper()
	b.current.Load().Drain()
	b.current.Load().Close()
	b.open()
}

func (b *brokered) now() time.Time {
	return time.Now().Add(time.Duration(b.ahead.Load()) * time.Minute)
}

// openMeter opens the records as they are on the disk at this moment, as after a crash: later writes of an earlier
// meter are not in them.
func (b *brokered) openMeter() {
	b.t.Helper()
	dir := b.t.TempDir()
	if b.usage != "" {
		if err := os.CopyFS(dir, os.DirFS(b.usage)); err != nil {
			b.t.Fatal(err)
		}
	}
	opened, err := meter.Open(meter.Config{Dir: dir, Now: b.now})
	if err != nil {
		b.t.Fatal(err)
	}
	b.meter, b.usage, b.meters = opened, dir, append(b.meters, opened)
}

// checkCounted compares the broker's count of the run with the simulator's bill. For each end of the broker, the count
// may exceed the bill by up to twice the cost of one second; otherwise it must be exact. In one second the small run
// may make all its requests, with samples of the greatest length.
func (b *brokered) checkCounted(verdict contract.Verdict) {
	b.t.Helper()
	const longest = 64
	deaths, stats := int64(len(b.meters)-1), b.sim.Stats()
	// A broker that died may have delivered a result without a record. The next one fetches it.
	b.ahead.Store(6)
	b.current.Load().FetchUnpolled(b.t.Context())
	b.meter.Close() // so that all is recorded
	var counted endpoint.Tokens
	for _, day := range b.meter.Days() {
		for _, row := range b.meter.Usage(day) {
			if row.UID != b.file.Run.UID || row.Model != b.file.Fixed.Model.Name {
				b.t.Errorf("the broker counted %+v, want the run and its model alone", row)
			}
			counted.Prefill += row.Tokens.Prefill
			counted.Sample += row.Tokens.Sample
			counted.Train += row.Tokens.Train
			counted.Forward += row.Tokens.Forward
		}
	}
	billed, used := stats.Billed, verdict.Progress.Usage
	training := billed.ForwardBackwardTokens + billed.ForwardTokens
	for name, row := range map[string]struct{ got, billed, used, second int64 }{
		"samples": {counted.Prefill + counted.Sample, billed.PromptTokens + billed.SampledTokens,
			used.PromptTokens + used.SampledTokens, billed.PromptTokens + longest*stats.SampledRows},
		"training": {counted.Train + counted.Forward, training, used.TrainedTokens, training},
	} {
		if row.got < row.billed || row.got > row.billed+2*deaths*row.second {
			b.t.Errorf("the broker counted %d tokens of %s, the simulator billed %d", row.got, name, row.billed)
		}
		if deaths == 0 && row.got != row.used {
			b.t.Errorf("the broker counted %d tokens of %s, the run %d", row.got, name, row.used)
		}
	}
}

// TestRunBehindABroker kills or drains the broker while the run trains: requests break off, and another process takes
// over the records. The run ends with the same weights and metrics, and reports the tokens that the simulator billed.
func TestRunBehindABroker(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*brokered){
		"undisturbed": nil,
		"that dies":   (*brokered).die,
		"that drains": (*brokered).roll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrokered(t)
			b.startWorker("w0", behavior{})
			var hook hook
			if end != nil {
				hook = b.at("covered.sent", -1, func(context.Context, func() error, string, int64) error {
					end(b)
					return nil
				})
			}
			verdict := b.waitFor(b.startLearner(1, hook), contract.CauseCompleted)
			b.checkSame(verdict)
			b.checkOther(verdict)
			b.checkCounted(verdict)
		})
	}
}

// TestBrokerThatEndsAtDrawnPoints kills or rolls the broker at about every fourth fault point that the learner passes.
// Another SURVIVAL_SEED draws other points.
func TestBrokerThatEndsAtDrawnPoints(t *testing.T) {
	t.Parallel()
	const seeds = 3
	first := seeds * fromEnvironment(t, "SURVIVAL_SEED", 0)
	for seed := range seeds {
		t.Run(fmt.Sprint(first+seed), func(t *testing.T) {
			t.Parallel()
			b := newBrokered(t)
			b.startWorker("w0", behavior{})
			var mu sync.Mutex
			random, ended := rand.New(rand.NewPCG(uint64(first+seed), 2)), 0
			verdict := b.waitFor(b.startLearner(1, func(context.Context, func() error, string, int64) error {
				mu.Lock()
				defer mu.Unlock()
				switch random.IntN(8) {
				case 0:
					b.die()
					ended++
				case 1:
					b.roll()
					ended++
				}
				return nil
			}), contract.CauseCompleted)
			b.checkSame(verdict)
			b.checkOther(verdict)
			b.checkCounted(verdict)
			if ended < 5 {
				t.Errorf("the broker ended %d times, want 5 or more", ended)
			}
		})
	}
}

// TestLearnerThatDiesBehindABroker checks that the next learner finds the run's checkpoints in the broker's listings.
func TestLearnerThatDiesBehindABroker(t *testing.T) {
	t.Parallel()
	b := newBrokered(t)
	b.startWorker("w0", behavior{})
	<-b.startLearner(1, b.dieAt("covered.sent", 1)).done
	b.checkSame(b.waitFor(b.startLearner(2, nil), contract.CauseCompleted))
}

// TestRestoreBehindABroker restores a deleted run in an installation with another manager key: with the broker's
// records, and without them. The broker lists the checkpoints of the former run. The token of the former run is no
// longer valid.
func TestRestoreBehindABroker(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("records lost %t", lost), func(t *testing.T) {
			t.Parallel()
			b := newBrokered(t)
			worker := b.startWorker("w0", behavior{})
			<-b.startLearner(1, b.dieAt("covered.sent", 2)).done
			worker.kill()
			formerToken, formerUID := b.key, b.createAnew()
			b.current.Load().Close()
			b.tokenKey = anotherEndpointKey
			if lost {
				b.dir, b.usage = t.TempDir(), ""
			}
			b.open()
			b.takeToken()
			if lost { // As cmd/broker does before it serves.
				if found, err := b.current.Load().Restore(t.Context()); err != nil || found == 0 {
					t.Fatalf("Restore found %d models (%v), want some", found, err)
				}
			}
			b.startWorker("w1", behavior{})
			verdict := b.waitFor(b.startLearner(1, nil), contract.CauseCompleted)
			b.checkSame(verdict)
			b.checkOther(verdict)
			if from := verdict.Progress.ResumedFrom; from == nil || from.UID != formerUID || from.Step < 1 {
				t.Errorf("the run resumed from %+v, want a step of run %s", from, formerUID)
			}
			b.checkRefused(formerToken)
		})
	}
}

// checkRefused checks that the broker refuses a token.
func (b *brokered) checkRefused(token string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet,
		b.front+"/api/v1/get_server_capabilities", http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", token)
	response, err := b.http.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		b.t.Errorf("the token of the former run gets %s, want 401", response.Status)
	}
}

// checkOther checks that a run of another team finds nothing of this run.
func (b *brokered) checkOther(verdict contract.Verdict) {
	b.t.Helper()
	ctx := b.t.Context()
	other, err := client.New(client.Config{BaseURL: b.front, HTTP: b.http,
		APIKey: contract.RunToken(b.tokenKey, b.other.UID)})
	if err != nil {
		b.t.Fatal(err)
	}
	for checkpoint, err := range other.Checkpoints(ctx) {
		b.t.Errorf("another run lists %s (%v), want nothing", checkpoint.TinkerPath, err)
	}
	state := verdict.Progress.Checkpoints[0].State
	for name, err := range map[string]error{
		"inspect": func() error { _, err := other.WeightsInfo(ctx, state); return err }(),
		"delete":  other.DeleteCheckpoint(ctx, state),
		"load":    func() error { _, err := other.ArchiveURL(ctx, state); return err }(),
	} {
		if client.CategoryFrom(err) != tinker.CategoryNotFound {
			b.t.Errorf("to %s a checkpoint, another run gets %v, want not found", name, err)
		}
	}
}
