// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// blockingLoader is a loader that waits until its channel is closed.
type blockingLoader struct {
	unblock chan struct{}
	loads   atomic.Int64
}

func newBlockingLoader() *blockingLoader { return &blockingLoader{unblock: make(chan struct{})} }

func (g *blockingLoader) load(string) (*model.Weights, error) {
	g.loads.Add(1)
	<-g.unblock
	return model.BaseWeights(model.Base()), nil
}

// outcome holds the result of a request.
type outcome struct {
	output Output
	err    error
	done   chan struct{}
}

// request returns a request for completions of "Q:" with the weights of a key.
func request(key string, rows int, seed uint64) (*Request, *outcome) {
	o := &outcome{done: make(chan struct{})}
	r := &Request{Key: key, Prompt: []int32{'Q', ':'}, Done: func(output Output, err error) {
		o.output, o.err = output, err
		close(o.done)
	}}
	for i := range rows {
		r.Rows = append(r.Rows, model.SampleRequest{Prompt: r.Prompt, MaxTokens: 8, Temperature: 1, TopP: 1, Seed: seed,
			Index: i})
	}
	return r, o
}

func submit(t *testing.T, e *Engine, r *Request) {
	t.Helper()
	if err := e.Submit(r); err != nil {
		t.Fatal(err)
	}
}

func TestEngineBatchesWaitingRequests(t *testing.T) {
	g := newBlockingLoader()
	e := New(Config{Decoders: 1, Rows: 16, Load: g.load, Now: time.Now})
	defer e.Close()
	first, blocking := request("a", 1, 0)
	submit(t, e, first)
	for g.loads.Load() == 0 { // the decoder waits for the weights
		time.Sleep(time.Millisecond)
	}
	var all []*outcome
	for i := range 10 {
		key := []string{"a", "b"}[i%2]
		r, o := request(key, 4, uint64(i))
		submit(t, e, r)
		all = append(all, o)
	}
	close(g.unblock)
	<-blocking.done
	for _, o := range all {
		<-o.done
		if o.err != nil || len(o.output.Samples) != 4 {
			t.Fatalf("%d samples, %v", len(o.output.Samples), o.err)
		}
	}
	// The first request is decoded alone, then 5 requests of 4 rows for each key, 4 requests at a time.
	e.Close()
	if got := e.Stats(); got.Batches != 5 || got.Rows != 41 || got.Tokens == 0 || got.Busy <= 0 {
		t.Errorf("stats %+v, want 5 batches of 41 rows", got)
	}
}

// TestEngineCountsBeforeItAnswers reads the counters as soon as a request has its result.
func TestEngineCountsBeforeItAnswers(t *testing.T) {
	g := newBlockingLoader()
	close(g.unblock)
	e := New(Config{Load: g.load, Now: time.Now})
	defer e.Close()
	r, o := request("a", 3, 0)
	done, counted := r.Done, Stats{}
	r.Done = func(output Output, err error) {
		counted = e.Stats()
		done(output, err)
	}
	submit(t, e, r)
	<-o.done
	if counted.Batches != 1 || counted.Rows != 3 || counted.Tokens == 0 {
		t.Errorf("the counters are %+v when the result is there, want 1 batch of 3 rows", counted)
	}
}

func TestEngineSubmitBusy(t *testing.T) {
	g := newBlockingLoader()
	e := New(Config{Decoders: 1, Waiting: 8, Load: g.load, Now: time.Now})
	defer e.Close()
	blocking, first := request("a", 1, 0)
	submit(t, e, blocking)
	for g.loads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	large, second := request("a", 20, 0)
	submit(t, e, large) // an empty queue accepts any request
	small, _ := request("a", 1, 0)
	if err := e.Submit(small); !errors.Is(err, ErrBusy) {
		t.Errorf("Submit = %v, want ErrBusy", err)
	}
	close(g.unblock)
	<-first.done
	<-second.done
	again, third := request("a", 1, 0)
	submit(t, e, again)
	<-third.done
}

func TestEngineRetriesRequestsAloneAfterError(t *testing.T) {
	g := newBlockingLoader()
	e := New(Config{Decoders: 1, Load: g.load, Now: time.Now})
	defer e.Close()
	blocking, first := request("a", 1, 0)
	submit(t, e, blocking)
	good, fine := request("a", 2, 1)
	bad, refused := request("a", 2, 2)
	bad.Rows[1].Prompt = []int32{-1}
	submit(t, e, good)
	submit(t, e, bad)
	close(g.unblock)
	<-first.done
	<-fine.done
	<-refused.done
	if fine.err != nil || len(fine.output.Samples) != 2 {
		t.Errorf("the good request: %d samples, %v", len(fine.output.Samples), fine.err)
	}
	if _, ok := errors.AsType[*model.UserError](refused.err); !ok {
		t.Errorf("the bad request: %v, want a user error", refused.err)
	}
}

// TestEngineDecodesNoCanceledRequest cancels a request that waits and one of a batch that is about to be decoded.
func TestEngineDecodesNoCanceledRequest(t *testing.T) {
	g := newBlockingLoader()
	e := New(Config{Decoders: 1, Load: g.load, Now: time.Now})
	defer e.Close()
	canceled := make(chan struct{})
	inBatch, first := request("a", 1, 0)
	inBatch.Canceled = canceled
	submit(t, e, inBatch)
	for g.loads.Load() == 0 { // the decoder has taken the request, and waits for the weights
		time.Sleep(time.Millisecond)
	}
	waits, second := request("a", 4, 1)
	waits.Canceled, waits.PromptLogprobs = canceled, true
	submit(t, e, waits)
	other, third := request("a", 2, 2)
	submit(t, e, other)
	close(canceled)
	close(g.unblock)
	for _, o := range []*outcome{first, second} {
		if <-o.done; !errors.Is(o.err, ErrCanceled) {
			t.Errorf("a canceled request: %d samples, %v, want ErrCanceled", len(o.output.Samples), o.err)
		}
	}
	if <-third.done; third.err != nil || len(third.output.Samples) != 2 {
		t.Errorf("the other request: %d samples, %v", len(third.output.Samples), third.err)
	}
	e.Close()
	if rows := e.Stats().Rows; rows != 2 {
		t.Errorf("%d rows were decoded, want the 2 of the request that was not canceled", rows)
	}
}

func TestEngineClose(t *testing.T) {
	g := newBlockingLoader()
	e := New(Config{Decoders: 1, Load: g.load, Now: time.Now})
	blocking, first := request("a", 1, 0)
	waiting, second := request("b", 1, 0)
	submit(t, e, blocking)
	for g.loads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	submit(t, e, waiting)
	var group sync.WaitGroup
	group.Go(e.Close)
	for e.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	close(g.unblock)
	group.Wait()
	<-first.done
	if first.err == nil {
		t.Error("a batch was decoded after Close")
	}
	if <-second.done; !errors.Is(second.err, ErrClosed) {
		t.Errorf("the waiting request got %v, want ErrClosed", second.err)
	}
	late, _ := request("a", 1, 0)
	if err := e.Submit(late); !errors.Is(err, ErrClosed) {
		t.Errorf("Submit after Close = %v, want ErrClosed", err)
	}
}

func TestEngineLoadError(t *testing.T) {
	broken := errors.New("broken")
	e := New(Config{Load: func(string) (*model.Weights, error) { return nil, broken }, Now: time.Now})
	defer e.Close()
	r, o := request("a", 1, 0)
	submit(t, e, r)
	if <-o.done; !errors.Is(o.err, broken) {
		t.Errorf("got %v, want the loader's error", o.err)
	}
}

func TestEnginePromptLogprobs(t *testing.T) {
	e := New(Config{Load: func(string) (*model.Weights, error) { return model.BaseWeights(model.Base()), nil },
		Now: time.Now})
	defer e.Close()
	r, o := request("a", 0, 0)
	r.PromptLogprobs, r.TopK = true, 3
	submit(t, e, r)
	if <-o.done; o.err != nil || len(o.output.PromptLogprobs) != 2 || len(o.output.TopIDs) != 2 ||
		len(o.output.TopIDs[1]) != 3 || len(o.output.Samples) != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestCacheEvictsLeastRecentlyUsed(t *testing.T) {
	var loaded []string
	c := newCache(2, func(key string) (*model.Weights, error) {
		loaded = append(loaded, key)
		return &model.Weights{}, nil
	})
	for _, key := range []string{"a", "b", "a", "c", "a", "b"} {
		if _, err := c.get(key); err != nil {
			t.Fatal(err)
		}
	}
	c.put("d", &model.Weights{})
	c.put("d", &model.Weights{})
	if _, err := c.get("d"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "b"}, loaded); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}
