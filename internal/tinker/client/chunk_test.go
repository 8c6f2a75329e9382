// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// textData returns datums of one token, numbered from 0.
func textData(n int) []tinker.Datum {
	data := make([]tinker.Datum, n)
	for i := range data {
		data[i] = tinker.Datum{
			ModelInput: tinker.Text([]int32{int32(i)}),
			LossFnInputs: map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints([]int64{1}),
				tinker.InputWeights: tinker.Floats([]float32{1})},
		}
	}
	return data
}

// bytesDatum returns a datum with an estimated size of n bytes.
func bytesDatum(n int) tinker.Datum {
	return tinker.Datum{ModelInput: tinker.ModelInput{Chunks: []tinker.Chunk{{Type: tinker.ChunkImage, Format: "png",
		Data: make([]byte, n)}}}}
}

func TestSplitData(t *testing.T) {
	cases := map[string]struct {
		data []tinker.Datum
		want []int
	}{
		"One datum is one chunk":            {data: textData(1), want: []int{1}},
		"A chunk has 1024 datums at most":   {data: textData(2049), want: []int{1024, 1024, 1}},
		"Exactly 1024 datums are one chunk": {data: textData(1024), want: []int{1024}},
		"A chunk has 5 MB at most": {data: []tinker.Datum{bytesDatum(2_500_000),
			bytesDatum(2_500_000), bytesDatum(1)}, want: []int{2, 1}},
		"A datum that would exceed the limit starts a chunk": {data: []tinker.Datum{bytesDatum(4_000_000),
			bytesDatum(1_000_001), bytesDatum(3_999_999)}, want: []int{1, 2}},
		"A larger datum is a chunk of its own": {data: []tinker.Datum{bytesDatum(1), bytesDatum(6_000_000), bytesDatum(1),
			bytesDatum(1)}, want: []int{1, 1, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			for chunk := range tinker.DefaultServerConfig().Chunks(slices.Values(tc.data)) {
				got = append(got, len(chunk))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
		})
	}
}

// outputOf replies with the result of a chunk of the datums first to last. The log-probability of a datum is its
// number.
func outputOf(t *testing.T, first, last int, metrics map[string]float64) scriptedReply {
	t.Helper()
	r := tinker.ForwardBackwardResult{LossFnOutputType: tinker.OutputArrayRecord, Metrics: metrics}
	for i := first; i <= last; i++ {
		r.LossFnOutputs = append(r.LossFnOutputs, map[string]tinker.Tensor{tinker.InputLogprobs: tinker.Floats(
			[]float32{float32(i)})})
	}
	body, err := tinker.EncodeOutput(r)
	return protobufReply(t, body, err)
}

func TestForwardBackwardInChunks(t *testing.T) {
	for name, compress := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) { checkChunks(t, ctx, compress) })
		})
	}
}

func checkChunks(t *testing.T, ctx context.Context, compress bool) {
	config, encoding := `{"fwdbwd_max_chunk_len":2}`, ""
	if compress {
		config, encoding = `{"fwdbwd_max_chunk_len":2,"proto_compress_fwdbwd":true}`, tinker.EncodingZstd
	}
	w := newTestClient(t, map[string][]scriptedReply{
		"client/config": {ok(config)},
		"forward_backward": {{hold: time.Second, status: 200, body: `{"request_id":"a"}`}, {lost: true},
			ok(`{"request_id":"b"}`), ok(`{"request_id":"c"}`)},
		"optim_step":        {ok(`{"request_id":"d"}`)},
		"retrieve_future#a": {delayed(outputOf(t, 0, 1, map[string]float64{"loss:sum": 1, "x:mean": 1}))},
		"retrieve_future#b": {outputOf(t, 2, 3, map[string]float64{"loss:sum": 2, "x:mean": 1})},
		"retrieve_future#c": {outputOf(t, 4, 4, map[string]float64{"loss:sum": 4, "x:mean": 6})},
		"retrieve_future#d": {ok("{}")},
	})
	m := w.createModel(t, ctx)
	loss := tinker.Loss{Name: tinker.LossPPO, Config: map[string]float64{"clip_low_threshold": 0.8,
		"clip_high_threshold": 1.2}}
	future := submitted(m.ForwardBackward(ctx, textData(5), loss))
	submitted(m.OptimStep(ctx, tinker.DefaultAdam()))
	got, err := future.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := tinker.ForwardBackwardResult{LossFnOutputType: tinker.OutputArrayRecord,
		Metrics: map[string]float64{"loss:sum": 7, "x:mean": 2}}
	for i := range 5 {
		want.LossFnOutputs = append(want.LossFnOutputs,
			map[string]tinker.Tensor{tinker.InputLogprobs: tinker.Floats([]float32{float32(i)})})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	checkChunkRequests(t, w, loss, encoding)
	if diff := cmp.Diff([]int64{4}, seqIDs(t, w.bodies("optim_step"))); diff != "" {
		t.Errorf("optim_step follows the chunks (-want +got):\n%s", diff)
	}
}

func checkChunkRequests(t *testing.T, w *testClient, loss tinker.Loss, encoding string) {
	t.Helper()
	var got []tinker.ForwardBackwardRequest
	for _, e := range w.requests("forward_backward") {
		if e.header.Get("Content-Type") != tinker.ContentProtobuf || e.header.Get("Content-Encoding") != encoding {
			t.Errorf("headers %v", e.header)
		}
		body, err := tinker.Decompress(encoding, []byte(e.body))
		if err != nil {
			t.Fatal(err)
		}
		request, err := tinker.DecodeForwardBackward(body)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, request)
	}
	data := textData(5)
	request := tinker.ForwardBackwardRequest{ModelID: "s:train:0", Loss: loss}
	want := []tinker.ForwardBackwardRequest{request, request, request, request}
	want[0].SeqID, want[0].Data = 1, data[:2]
	want[1].SeqID, want[1].Data = 2, data[2:4]
	want[2].SeqID, want[2].Data = 2, data[2:4]
	want[3].SeqID, want[3].Data = 3, data[4:]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ms(0, 1000, 1500, 1500), w.times("forward_backward")); diff != "" {
		t.Errorf("each chunk waits for the response to the one before (-want +got):\n%s", diff)
	}
	poll := w.requests("retrieve_future")[1].header
	if poll.Get("Accept") != tinker.ContentProtobuf || poll.Get("X-Tinker-Request-Type") != "ForwardBackward" {
		t.Errorf("poll %v", poll)
	}
}

func TestForwardRequest(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"forward_backward": {ok(`{"request_id":"a"}`)},
			"retrieve_future": {outputOf(t, 0, 0, nil)}})
		if _, err := submitted(w.createModel(t, ctx).Forward(ctx, textData(1),
			tinker.Loss{Name: tinker.LossCrossEntropy})).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		request, err := tinker.DecodeForwardBackward([]byte(w.bodies("forward_backward")[0]))
		if err != nil || !request.ForwardOnly {
			t.Errorf("request %+v, %v", request, err)
		}
		if got := w.requests("retrieve_future")[1].header.Get("X-Tinker-Request-Type"); got != "Forward" {
			t.Errorf("type of the poll %q", got)
		}
	})
}

func TestFailedChunk(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"client/config":     {ok(`{"fwdbwd_max_chunk_len":1}`)},
			"forward_backward":  {ok(`{"request_id":"a"}`), ok(`{"request_id":"b"}`), ok(`{"request_id":"c"}`)},
			"retrieve_future#a": {delayed(outputOf(t, 0, 0, nil))},
			"retrieve_future#b": {ok(`{"error":"boom","category":"server"}`)},
			"retrieve_future#c": {delayed(outputOf(t, 2, 2, nil))},
		})
		m := w.createModel(t, ctx)
		future := submitted(m.ForwardBackward(ctx, textData(3), tinker.Loss{}))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		select {
		case <-future.done:
			t.Error("the call ended before all of its chunks")
		default:
		}
		_, err := future.Wait(ctx)
		if CategoryFrom(err) != tinker.CategoryServer || !MayHaveRun(err) {
			t.Errorf("Wait = %v", err)
		}
	})
}

func TestRejectedChunk(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"client/config":     {ok(`{"fwdbwd_max_chunk_len":1}`)},
			"forward_backward":  {ok(`{"request_id":"a"}`), status(400)},
			"retrieve_future#a": {{hold: time.Hour}},
		})
		_, err := w.createModel(t, ctx).ForwardBackward(ctx, textData(3), tinker.Loss{})
		if CategoryFrom(err) != tinker.CategoryUser || !MayHaveRun(err) {
			t.Errorf("the chunk before may have run: %v, %v", err, MayHaveRun(err))
		}
		if n := len(w.requests("forward_backward")); n != 2 {
			t.Errorf("%d submits", n)
		}
	})
}

func TestInvalidOutputs(t *testing.T) {
	two := outputOf(t, 0, 1, nil)
	cases := map[string]scriptedReply{
		"of another number of datums": two,
		"in JSON":                     ok(`{"metrics":{}}`),
		"that are not protobuf": {status: 200,
			header: map[string]string{"Content-Type": tinker.ContentProtobuf}, body: "\xff"},
		"with a metric without a colon":          outputOf(t, 0, 0, map[string]float64{"loss": 1}),
		"with a metric with more than one colon": outputOf(t, 0, 0, map[string]float64{"a:b:sum": 1}),
	}
	for name, poll := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"forward_backward": {ok(`{"request_id":"a"}`)},
					"retrieve_future": {poll}})
				_, err := submitted(w.createModel(t, ctx).ForwardBackward(ctx, textData(1), tinker.Loss{})).Wait(ctx)
				if CategoryFrom(err) != tinker.CategoryProtocol || !MayHaveRun(err) {
					t.Errorf("Wait = %v", err)
				}
			})
		})
	}
}

func TestCombine(t *testing.T) {
	chunk := func(datums int, metrics map[string]float64) tinker.ForwardBackwardResult {
		return tinker.ForwardBackwardResult{LossFnOutputs: make([]map[string]tinker.Tensor, datums), Metrics: metrics}
	}
	cases := map[string]struct {
		chunks []tinker.ForwardBackwardResult
		want   map[string]float64
	}{
		"Every reduction over two chunks": {
			chunks: []tinker.ForwardBackwardResult{
				chunk(3, map[string]float64{"a:sum": 1, "a:min": 1, "a:max": 1, "a:mean": 1, "a:slack": 1, "a:unique": 1}),
				chunk(1, map[string]float64{"a:sum": 5, "a:min": 5, "a:max": 5, "a:mean": 5, "a:slack": 5, "a:unique": 5}),
			},
			want: map[string]float64{"a:sum": 6, "a:min": 1, "a:max": 5, "a:mean": 2, "a:slack": 3, "a:unique": 1,
				"a:unique_1": 5},
		},
		"A metric that a chunk lacks or that has another reduction is dropped": {
			chunks: []tinker.ForwardBackwardResult{chunk(1, map[string]float64{"a:sum": 1, "b:sum": 1, "c:median": 1}),
				chunk(1, map[string]float64{"b:sum": 2, "d:sum": 2, "c:median": 2})},
			want: map[string]float64{"b:sum": 3},
		},
		"Chunks without outputs have the same weight": {chunks: []tinker.ForwardBackwardResult{chunk(0,
			map[string]float64{"a:mean": 1}), chunk(0, map[string]float64{"a:mean": 2})},
			want: map[string]float64{"a:mean": 1.5}},
		"One chunk keeps its values": {chunks: []tinker.ForwardBackwardResult{chunk(2,
			map[string]float64{"a:mean": 4, "a:slack": 4})}, want: map[string]float64{"a:mean": 4, "a:slack": 0}},
		"Chunks without metrics": {chunks: []tinker.ForwardBackwardResult{chunk(2, nil)}, want: map[string]float64{}},
		"A mean of NaN is NaN": {chunks: []tinker.ForwardBackwardResult{chunk(1,
			map[string]float64{"a:mean": math.Inf(1)})}, want: map[string]float64{"a:mean": math.Inf(1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := combine(tc.chunks)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPassTakesDataAsTheyAreSent submits a pass in chunks of four datums. Before a chunk is sent, only its datums are
// taken, and one more: the datum that no longer fits.
func TestPassTakesDataAsTheyAreSent(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		const n, perChunk = 12, 4
		w := newTestClient(t, map[string][]scriptedReply{
			"forward_backward": {ok(`{"request_id":"a"}`)}, "retrieve_future#a": {ok("{}")},
		})
		m := w.createModel(t, ctx)
		taken := 0
		data := func(yield func(tinker.Datum) bool) {
			for range n {
				sent := len(w.bodies("forward_backward"))
				if taken > 0 && sent < (taken-1)/perChunk {
					t.Errorf("datum %d is taken after %d chunks were sent", taken, sent)
				}
				if taken++; !yield(bytesDatum(1_200_000)) {
					return
				}
			}
		}
		if _, err := m.ForwardBackwardEach(ctx, data, tinker.Loss{Name: tinker.LossPPO}); err != nil {
			t.Fatal(err)
		}
		if sent := len(w.bodies("forward_backward")); taken != n || sent != n/perChunk {
			t.Errorf("%d datums were taken for %d chunks, want %d for %d", taken, sent, n, n/perChunk)
		}
		nothing := func(func(tinker.Datum) bool) {}
		if _, err := m.ForwardEach(ctx, nothing, tinker.Loss{}); CategoryFrom(err) != tinker.CategoryUser || MayHaveRun(err) {
			t.Errorf("a pass without data: %v", err)
		}
	})
}
