// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// limitedProxy is a proxy that rejects bodies of more than limit bytes with 413, before the server sees them.
type limitedProxy struct {
	*httptest.Server
	limit, rejected atomic.Int64
	// passing is the number of rejections after which no body is rejected; 0 if there is none.
	passing atomic.Int64
	// passes counts the bodies of forward_backward that the server received.
	passes atomic.Int64
}

func newLimitedProxy(t *testing.T, limit int64) *limitedProxy {
	t.Helper()
	sim, err := tinkersim.New(tinkersim.Options{Dir: t.TempDir(), GapPatience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	backend := httptest.NewServer(sim)
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &limitedProxy{}
	p.limit.Store(limit)
	forward := httputil.NewSingleHostReverseProxy(target)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > p.limit.Load() {
			if n := p.rejected.Add(1); n == p.passing.Load() {
				p.limit.Store(math.MaxInt64)
			}
			http.Error(w, "<html>413 Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/forward_backward") {
			p.passes.Add(1)
		}
		// Otherwise the server closes the request's body with the first byte of the response, and a proxy that has not seen
		// the end of the body yet breaks the response.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		sim.Close()
		p.CloseClientConnections()
		p.Close()
		backend.CloseClientConnections()
		backend.Close()
	})
	return p
}

// longData returns datums of about size bytes each.
func longData(n, size int) []tinker.Datum {
	data := make([]tinker.Datum, n)
	for i := range data {
		tokens, targets, weights := make([]int32, size/16), make([]int64, size/16), make([]float32, size/16)
		for j := range tokens {
			tokens[j], targets[j], weights[j] = int32((i+j)%200), int64((i+j+1)%200), 1
		}
		data[i] = tinker.Datum{ModelInput: tinker.Text(tokens), LossFnInputs: map[string]tinker.Tensor{
			tinker.InputTargetTokens: tinker.Ints(targets), tinker.InputWeights: tinker.Floats(weights),
		}}
	}
	return data
}

func newModel(t *testing.T, api *client.Client) *client.Model {
	t.Helper()
	session, err := api.CreateSession(t.Context(), client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return simulated{api, session}.model(t, 0)
}

// TestBodiesAreSentInPartsAfter413 trains behind a proxy that rejects the batch: the client repeats the batch and, if
// the rejection lasts, halves it. Each datum counts once.
func TestBodiesAreSentInPartsAfter413(t *testing.T) {
	trainOn := func(limit int64) (tinker.ForwardBackwardResult, *limitedProxy) {
		proxy := newLimitedProxy(t, limit)
		api, err := client.New(client.Config{BaseURL: proxy.URL, APIKey: "tml-test", UserAgent: "test"})
		if err != nil {
			t.Fatal(err)
		}
		model := newModel(t, api)
		var last tinker.ForwardBackwardResult
		for range 3 {
			pass, err := model.ForwardBackward(t.Context(), longData(16, 1000), crossEntropy)
			last = wait(t, pass, err)
			step, err := model.OptimStep(t.Context(), tinker.AdamParams{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
			wait(t, step, err)
		}
		return last, proxy
	}
	want, _ := trainOn(1 << 30)
	got, proxy := trainOn(5000)
	if len(got.LossFnOutputs) != 16 {
		t.Fatalf("results have %d datums, want 16", len(got.LossFnOutputs))
	}
	approximately := cmp.Comparer(func(a, b float32) bool { return max(a-b, b-a) < 1e-4 })
	if diff := cmp.Diff(want.LossFnOutputs, got.LossFnOutputs, approximately); diff != "" {
		t.Errorf("outputs of the third step differ from the outputs of whole batches (-want +got):\n%s", diff)
	}
	if n := proxy.rejected.Load(); n < 5 || n > 8 {
		t.Errorf("%d bodies were rejected, want 5 times the first one, and a few parts", n)
	}
}

// TestBodiesAreWholeAfterA413ThatPasses trains while a proxy rejects a few bodies whatever their size, before or after
// it has accepted a body as large: no batch is divided.
func TestBodiesAreWholeAfterA413ThatPasses(t *testing.T) {
	for name, accepted := range map[string]bool{"before any body is accepted": false, "after a body as large": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newLimitedProxy(t, 1<<20)
			api, err := client.New(client.Config{BaseURL: proxy.URL, APIKey: "tml-test", UserAgent: "test"})
			if err != nil {
				t.Fatal(err)
			}
			model := newModel(t, api)
			train := func() {
				pass, err := model.ForwardBackward(t.Context(), longData(16, 1000), crossEntropy)
				wait(t, pass, err)
			}
			if accepted {
				train()
			}
			whole := proxy.passes.Load()
			proxy.passing.Store(3)
			proxy.limit.Store(500)
			train()
			if n := proxy.passes.Load() - whole; n != 1 || proxy.rejected.Load() != 3 {
				t.Errorf("the batch is sent in %d parts after %d rejections, want in one after 3", n, proxy.rejected.Load())
			}
		})
	}
}

// TestSingleDatumWaitsAfter413 sends datums each of which is too large for a proxy: an event reports the rejection, and
// the call succeeds once the limit is raised.
func TestSingleDatumWaitsAfter413(t *testing.T) {
	proxy := newLimitedProxy(t, 1500)
	events := make(chan client.Event, 100)
	api, err := client.New(client.Config{
		BaseURL: proxy.URL, APIKey: "tml-test", UserAgent: "test", Observe: func(e client.Event) { events <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	model := newModel(t, api)
	type outcome struct {
		result tinker.ForwardBackwardResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		pass, err := model.ForwardBackward(t.Context(), longData(2, 4000), crossEntropy)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		result, err := pass.Wait(t.Context())
		done <- outcome{result, err}
	}()
	event := <-events
	if event.Category != tinker.CategoryTooLarge || !strings.HasPrefix(event.Evidence(),
		"POST /api/v1/forward_backward was answered with 413") {
		t.Errorf("event is %+v", event)
	}
	proxy.limit.Store(1 << 20)
	got := <-done
	if got.err != nil || len(got.result.LossFnOutputs) != 2 {
		t.Errorf("result has %d datums, error %v", len(got.result.LossFnOutputs), got.err)
	}
	for len(events) > 0 {
		event = <-events
	}
	if !event.Over {
		t.Errorf("last event is %+v, want that the error is over", event)
	}
}
