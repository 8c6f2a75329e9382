// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// errCut is the cause of a poll that took too long for the ingress.
var errCut = errors.New("upstream request timeout")

// polled counts the polls for each result.
type polled struct {
	mu     sync.Mutex
	number map[string]int
}

// next returns how many polls have had the same body so far.
func (p *polled) next(body string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number[body]++
	return p.number[body] - 1
}

// cutPolls puts an ingress before the simulator that answers polls with 504 after a while, and returns the number of
// cut polls. Each further poll for a result may take twice as long, so that one succeeds on a machine of any speed.
func (w *fixture) cutPolls(after time.Duration) *atomic.Int64 {
	w.t.Helper()
	target, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	var cut atomic.Int64
	began := polled{number: map[string]int{}}
	polls, others := httputil.NewSingleHostReverseProxy(target), httputil.NewSingleHostReverseProxy(target)
	polls.ErrorHandler = func(rw http.ResponseWriter, r *http.Request, _ error) {
		if errors.Is(context.Cause(r.Context()), errCut) {
			cut.Add(1)
		}
		http.Error(rw, "upstream request timeout", http.StatusGatewayTimeout)
	}
	ingress := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/retrieve_future") {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			ctx, cancel := context.WithTimeoutCause(r.Context(), after<<began.next(string(body)), errCut)
			defer cancel()
			polls.ServeHTTP(rw, r.WithContext(ctx))
			return
		}
		// Otherwise the server closes the request's body with the first byte of the response, and a proxy that has not seen
		// the end of the body yet breaks the response.
		if err := http.NewResponseController(rw).EnableFullDuplex(); err != nil {
			w.t.Error(err)
		}
		others.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(func() {
		ingress.CloseClientConnections()
		ingress.Close()
	})
	w.url = ingress.URL
	w.file.Fixed.BaseURL = w.url
	if w.file.Capabilities != nil {
		w.file.Capabilities.BaseURL = w.url
	}
	return &cut
}

// TestIngressThatCutsPolls trains behind an ingress that cuts polls long before the server answers them: the run
// completes with the weights of an undisturbed one, and no operation is executed twice.
func TestIngressThatCutsPolls(t *testing.T) {
	t.Parallel()
	for _, name := range []string{dialect.Protobuf, dialect.NameSkyRL} {
		t.Run("dialect "+name, func(t *testing.T) {
			t.Parallel()
			const cutAfter, result, hold = 30 * time.Millisecond, 0.15, 5 * time.Second
			run := func(ingress bool) (weights string, executed map[string]int64, cut int64) {
				w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, PollPatience: hold, PollHold: hold,
					Dialect: name}, nil)
				if name == dialect.NameSkyRL {
					found, _ := skyRLBaseline(t)
					w.knowing(found)
				}
				w.addFaults(operations(fault.Rule{Do: fault.Pause, Seconds: result, Stage: fault.Reply, Count: -1})...)
				var cuts atomic.Int64
				counter := &cuts
				if ingress {
					counter = w.cutPolls(cutAfter)
				}
				w.startWorker("w0", behavior{})
				verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
				return w.weights(verdict), w.sim.Stats().Operations, counter.Load()
			}
			want, undisturbed, _ := run(false)
			got, executed, cut := run(true)
			if cut == 0 {
				t.Error("the ingress has cut no poll")
			}
			if got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			for _, op := range []string{"create_model", "forward_backward", "optim_step", "save_weights"} {
				if executed[op] != undisturbed[op] || executed[op] == 0 {
					t.Errorf("%s was executed %d times, undisturbed %d times", op, executed[op], undisturbed[op])
				}
			}
		})
	}
}
