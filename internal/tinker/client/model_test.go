// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestOperationBodies(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		accepted := []scriptedReply{ok(`{"request_id":"r"}`)}
		w := newTestClient(t, map[string][]scriptedReply{
			"optim_step": accepted, "save_weights": accepted, "save_weights_for_sampler": accepted, "load_weights": accepted,
			"unload_model": accepted, "retrieve_future": {
				ok(`{"path":"p","metrics":{"unclipped_grad_l2:mean":0.5,"free":2,"nan":null},"model_id":"s:train:0"}`),
			},
		})
		m := w.createModel(t, ctx)
		if m.ID() != "s:train:0" {
			t.Errorf("ID = %q", m.ID())
		}
		load := submitted(m.LoadState(ctx, "tinker://o/weights/n", true))
		step := submitted(m.OptimStep(ctx, tinker.AdamParams{LearningRate: 3e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-12}))
		state := submitted(m.SaveState(ctx, SaveRequest{Name: "n"}))
		sampler := submitted(m.SaveSampler(ctx, SaveRequest{Name: "v1", TTLSeconds: 3600}))
		if err := w.UnloadModel(ctx, m.ID()); err != nil {
			t.Errorf("Unload: %v", err)
		}
		loaded, err := load.Wait(ctx)
		if err != nil || loaded.ModelID != "s:train:0" {
			t.Errorf("LoadState = %v, %v", loaded, err)
		}
		stepped, err := step.Wait(ctx)
		if diff := cmp.Diff(map[string]float64{"unclipped_grad_l2:mean": 0.5, "free": 2, "nan": math.NaN()}, stepped.Metrics,
			cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("OptimStep: %v, metrics (-want +got):\n%s", err, diff)
		}
		for _, f := range []*Future[tinker.SaveResult]{state, sampler} {
			if got, err := f.Wait(ctx); err != nil || got.Path != "p" {
				t.Errorf("save = %v, %v", got, err)
			}
		}
		for path, want := range map[string]string{
			"create_model": `{"session_id":"s","model_seq_id":0,"base_model":"base",` +
				`"lora_config":{"rank":32,"train_unembed":true,"train_mlp":true,"train_attn":true},"type":"create_model"}`,
			"load_weights": `{"model_id":"s:train:0","seq_id":1,"path":"tinker://o/weights/n","optimizer":true,"type":"load_weights"}`,
			"optim_step": `{"adam_params":{"learning_rate":0.0003,"beta1":0.9,"beta2":0.95,"eps":1e-12,"weight_decay":0,"grad_clip_norm":0},` +
				`"model_id":"s:train:0","seq_id":2,"type":"optim_step"}`,
			"save_weights":             `{"model_id":"s:train:0","path":"n","seq_id":3,"overwrite":false,"type":"save_weights"}`,
			"save_weights_for_sampler": `{"model_id":"s:train:0","path":"v1","seq_id":4,"ttl_seconds":3600,"type":"save_weights_for_sampler"}`,
			"unload_model":             `{"model_id":"s:train:0","type":"unload_model"}`,
		} {
			if diff := cmp.Diff([]string{want}, w.bodies(path)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	})
}

// submitted stops the test if a submit failed.
func submitted[T any](f *Future[T], err error) *Future[T] {
	if err != nil {
		panic(err)
	}
	return f
}

func TestSubmits(t *testing.T) {
	accepted := ok(`{"request_id":"r"}`)
	cases := map[string]struct {
		submits []scriptedReply
		seqs    []int64
		at      []time.Duration
	}{
		"Numbers count from 1": {submits: []scriptedReply{accepted}, seqs: []int64{1, 2, 3}, at: ms(0, 0, 0)},
		"A submit whose response was lost is repeated under its number": {submits: []scriptedReply{{lost: true}, accepted},
			seqs: []int64{1, 1, 2, 3}, at: ms(0, 500, 500, 500)},
		"So is one that was throttled, or failed or timed out at the server": {
			submits: []scriptedReply{status(429), accepted, status(500), status(402), accepted, {hold: time.Hour}, accepted},
			seqs:    []int64{1, 1, 2, 2, 2, 3, 3}, at: ms(0, 500, 500, 1000, 6000, 6000, 66500),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"optim_step": tc.submits, "retrieve_future": {ok("{}")}})
				m := w.createModel(t, ctx)
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						if _, err := submitted(m.OptimStep(ctx, tinker.DefaultAdam())).Wait(ctx); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if diff := cmp.Diff(tc.seqs, seqIDs(t, w.bodies("optim_step"))); diff != "" {
					t.Errorf("sequence ids (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.at, w.times("optim_step")); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestBrokenModel(t *testing.T) {
	cases := map[string]struct {
		submit     scriptedReply
		category   tinker.Category
		mayHaveRun bool
	}{
		"by a rejected submit":               {submit: status(400), category: tinker.CategoryUser},
		"by a server that lost the model":    {submit: status(404), category: tinker.CategoryNotFound},
		"by a name in use":                   {submit: status(409), category: tinker.CategoryExists},
		"by a response without a request id": {submit: ok(`{}`), category: tinker.CategoryProtocol, mayHaveRun: true},
		"by a context that ends before a response": {submit: scriptedReply{hold: time.Hour},
			category: tinker.CategoryCanceled, mayHaveRun: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"save_weights": {tc.submit}})
				m := w.createModel(t, ctx)
				short, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				_, err := m.SaveState(short, SaveRequest{Name: "n"})
				if CategoryFrom(err) != tc.category || MayHaveRun(err) != tc.mayHaveRun {
					t.Errorf("SaveState = %v, may have run %v", err, MayHaveRun(err))
				}
				_, err = m.OptimStep(ctx, tinker.DefaultAdam())
				if !errors.Is(err, ErrModelBroken) || MayHaveRun(err) {
					t.Errorf("OptimStep = %v, may have run %v", err, MayHaveRun(err))
				}
				_, err = m.Forward(ctx, textData(1), tinker.Loss{Name: tinker.LossCrossEntropy})
				if !errors.Is(err, ErrModelBroken) {
					t.Errorf("Forward = %v", err)
				}
				if n := len(w.requests("optim_step")) + len(w.requests("forward_backward")); n != 0 {
					t.Errorf("a broken model submitted %d operations", n)
				}
			})
		})
	}
}

func TestModelAfterRejectedForward(t *testing.T) {
	cases := map[string]struct {
		submits []scriptedReply
		broken  bool
		seqs    []int64
	}{
		"A rejection leaves a gap": {submits: []scriptedReply{status(400), status(422), status(413)},
			seqs: []int64{4}},
		"A rejection after 5xx may follow an execution": {submits: []scriptedReply{status(500), status(400)}, broken: true},
		"A response without a request id":               {submits: []scriptedReply{ok("{}")}, broken: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{
					"forward_backward": tc.submits, "optim_step": {ok(`{"request_id":"r"}`)}, "retrieve_future": {ok("{}")},
				})
				m := w.createModel(t, ctx)
				for range 3 {
					if _, err := m.Forward(ctx, textData(1), tinker.Loss{Name: tinker.LossCrossEntropy}); err == nil {
						t.Fatal("a rejected Forward has no error")
					}
				}
				_, err := m.OptimStep(ctx, tinker.DefaultAdam())
				if errors.Is(err, ErrModelBroken) != tc.broken {
					t.Errorf("OptimStep = %v", err)
				}
				if diff := cmp.Diff(tc.seqs, seqIDs(t, w.bodies("optim_step"))); diff != "" {
					t.Errorf("sequence ids (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestModelAfterLocalErrors(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"optim_step":      {{hold: 10 * time.Second, status: 200, body: `{"request_id":"r"}`}, ok(`{"request_id":"r"}`)},
			"retrieve_future": {ok("{}")},
		})
		m := w.createModel(t, ctx)
		_, err := m.ForwardBackward(ctx,
			[]tinker.Datum{{ModelInput: tinker.ModelInput{Chunks: []tinker.Chunk{{Type: tinker.ChunkImagePointer}}}}},
			tinker.Loss{})
		if CategoryFrom(err) != tinker.CategoryUser || MayHaveRun(err) {
			t.Errorf("a datum that cannot be encoded: %v", err)
		}
		if _, err = m.ForwardBackward(ctx, nil, tinker.Loss{}); CategoryFrom(err) != tinker.CategoryUser || MayHaveRun(err) {
			t.Errorf("no data: %v", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { submitted(m.OptimStep(ctx, tinker.DefaultAdam())) })
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		for _, waiting := range []context.Context{short, short} {
			if _, err = m.OptimStep(waiting, tinker.DefaultAdam()); CategoryFrom(err) != tinker.CategoryCanceled ||
				MayHaveRun(err) {
				t.Errorf("a context that ended before the submit: %v", err)
			}
		}
		if _, err = m.Forward(short, textData(1), tinker.Loss{}); CategoryFrom(err) != tinker.CategoryCanceled ||
			MayHaveRun(err) {
			t.Errorf("a context that ended before the submit: %v", err)
		}
		wg.Wait()
		if _, err := submitted(m.OptimStep(ctx, tinker.DefaultAdam())).Wait(ctx); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int64{1, 2}, seqIDs(t, w.bodies("optim_step"))); diff != "" {
			t.Errorf("the numbers are consecutive (-want +got):\n%s", diff)
		}
	})
}

func TestCreateModelFails(t *testing.T) {
	cases := map[string]struct {
		submit, poll scriptedReply
		want         tinker.Category
	}{
		"by the POST": {submit: status(400), want: tinker.CategoryUser},
		"by the result": {submit: ok(`{"request_id":"r"}`),
			poll: ok(`{"error":"no such model","category":"user"}`), want: tinker.CategoryUser},
		"by a result without an id": {submit: ok(`{"request_id":"r"}`), poll: ok(`{}`), want: tinker.CategoryProtocol},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"create_model": {tc.submit}, "retrieve_future": {tc.poll}})
				if _, err := w.CreateModel(ctx, tinker.CreateModelRequest{Session: "s"}); CategoryFrom(err) != tc.want {
					t.Errorf("CreateModel = %v", err)
				}
			})
		})
	}
}

func TestUnloadModel(t *testing.T) {
	cases := map[string]struct {
		submit, poll scriptedReply
		unsupported  bool
		want         tinker.Category
	}{
		"404 is an endpoint that cannot": {submit: status(404), unsupported: true, want: tinker.CategoryNotFound},
		"405 is an endpoint that cannot": {submit: status(405), unsupported: true, want: tinker.CategoryUnsupported},
		"A rejection is an error":        {submit: status(403), want: tinker.CategoryUnauthorized},
		"A failed result is an error": {submit: ok(`{"request_id":"r"}`), poll: ok(`{"error":"x"}`),
			want: tinker.CategoryUnknown},
		"A result is a success": {submit: ok(`{"request_id":"r"}`), poll: ok(`{"model_id":"m","type":"unload_model"}`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"unload_model": {tc.submit}, "retrieve_future": {tc.poll}})
				err := w.UnloadModel(ctx, "m")
				if errors.Is(err, ErrUnsupported) != tc.unsupported || CategoryFrom(err) != tc.want {
					t.Errorf("UnloadModel = %v", err)
				}
			})
		})
	}
}

// TestSubmitsInOrder checks that a submit is sent only after the response to the one before.
func TestSubmitsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		slow := scriptedReply{hold: time.Second, status: 200, body: `{"request_id":"r"}`}
		w := newTestClient(t, map[string][]scriptedReply{"optim_step": {slow}, "save_weights": {slow},
			"retrieve_future": {ok(`{"path":"p"}`)}})
		m := w.createModel(t, ctx)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { submitted(m.OptimStep(ctx, tinker.DefaultAdam())) })
			wg.Go(func() { submitted(m.SaveState(ctx, SaveRequest{Name: "n"})) })
		}
		wg.Wait()
		bodies := slices.Concat(w.bodies("optim_step"), w.bodies("save_weights"))
		got := seqIDs(t, bodies)
		slices.Sort(got)
		if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, got); diff != "" {
			t.Errorf("sequence ids (-want +got):\n%s", diff)
		}
		at := slices.Concat(w.times("optim_step"), w.times("save_weights"))
		slices.Sort(at)
		if diff := cmp.Diff(ms(0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000), at); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
	})
}
