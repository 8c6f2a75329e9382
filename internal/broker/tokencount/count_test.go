// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokencount

import (
	"encoding/json"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// data are datums with 3, 5 and 0 tokens of text and an image of 7, with tensors that do not count.
func data() []tinker.Datum {
	inputs := map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints([]int64{2, 3, 4}),
		tinker.InputWeights: tinker.Floats([]float32{1, 1, 1})}
	image := tinker.Chunk{Type: tinker.ChunkImage, Data: []byte("0123456789"), Format: "png",
		ExpectedTokens: new(int32(7))}
	return []tinker.Datum{
		{ModelInput: tinker.Text([]int32{1, 2, 3}), LossFnInputs: inputs},
		{ModelInput: tinker.ModelInput{Chunks: []tinker.Chunk{{Type: tinker.ChunkText, Tokens: []int32{1, 200000}}, image,
			{Type: tinker.ChunkText, Tokens: []int32{9, 9, 9}}}}, LossFnInputs: inputs},
		{ModelInput: tinker.Text(nil), LossFnInputs: inputs},
	}
}

// pieces writes a body to a counter in pieces of size bytes.
func pieces(to interface{ Write([]byte) (int, error) }, body []byte, size int) {
	for len(body) > 0 {
		n := min(size, len(body))
		_, _ = to.Write(body[:n])
		body = body[n:]
	}
}

func TestData(t *testing.T) {
	for _, forward := range []bool{false, true} {
		r := tinker.ForwardBackwardRequest{ModelID: "m", SeqID: 300, ForwardOnly: forward, Data: data(),
			Loss: tinker.Loss{Name: "cross_entropy", Config: map[string]float64{"x": 1}}}
		plain := must[[]byte](t)(tinker.EncodeForwardBackward(r))
		for _, size := range []int{1, 2, 3, 7, len(plain)} {
			got := NewData()
			pieces(got, plain, size)
			if got.Tokens() != 15 || got.ForwardOnly() != forward {
				t.Errorf("in pieces of %d bytes: %d tokens, forward %t, want 15, %t", size, got.Tokens(), got.ForwardOnly(),
					forward)
			}
		}
		text := must[[]byte](t)(tinker.EncodeForwardBackwardJSON(r))
		if got := Prompt(text); got != 15 {
			t.Errorf("JSON: %d tokens, want 15", got)
		}
	}
}

func TestDataThatNoClientWritesIsRefused(t *testing.T) {
	for _, body := range []string{
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x1b\x1b", "\x1a\xff\xff\xff\xff\xff\xff\xff\x7f",
	} {
		got := NewData()
		pieces(got, []byte(body+"more of it"), 1)
		if got.Err() == nil {
			t.Errorf("%q is read, want an error", body)
		}
	}
}

func TestPrompt(t *testing.T) {
	for text, want := range map[string]int64{
		`{"chunks":[{"type":"encoded_text","tokens":[1,2,300]},{"type":"encoded_text","tokens":[]}]}`:            3,
		`{"chunks":[{"type":"encoded_text","tokens":[ 1 , -2 ] }]}`:                                              2,
		`{"chunks":[{"type":"image","data":"W1sxLDIs\"tokens\":[1]","format":"png","expected_tokens":81}]}`:      81,
		`{"chunks":[{"type":"image_asset_pointer","location":"[1,2,3]","expected_tokens":null},{"tokens":[7]}]}`: 1,
		`{"chunks":[{"tokens":[1,2]}],"chunks":[{"tokens":[1,2,3]}]}`:                                            5,
		`{"chunks":[{"Tokens":[1,2]},{"\u0074okens":[1]}]}`:                                                      3,
		`{"chunks":[{"tokens":[[1,2],[3]]}],"other":[1,2,3],"expected_tokens":-5}`:                               3,
		`{"a":{"tokens":{"b":[1]}},"tokens":[{"tokens":[1]},5]}`:                                                 2,
		`{"tokens":[10, 20,30,-4,5e1,6.5,[7,8],9],"seq_id":10,"expected_tokens":11,"other":[12,13]}`:             20,
	} {
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s is not JSON", text)
		}
		for size := 1; size <= len(text); size++ {
			got := NewText()
			pieces(got, []byte(text), size)
			if got.Tokens() != want {
				t.Errorf("%s in pieces of %d bytes has %d tokens, want %d", text, size, got.Tokens(), want)
			}
		}
	}
}

// FuzzPrompt compares the count of a whole body with its count byte by byte, which takes no shortcut for lists of
// integers.
func FuzzPrompt(f *testing.F) {
	for _, text := range []string{
		`{"tokens":[1,2, 3,-4,5.5,[6,7],{"tokens":[8]},9]}`, `{"expected_tokens":12,"tokens":[0]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		slow := NewText()
		pieces(slow, body, 1)
		if got := Prompt(body); got != slow.Tokens() {
			t.Errorf("%q has %d tokens, and %d byte by byte", body, got, slow.Tokens())
		}
	})
}

func TestResult(t *testing.T) {
	result := tinker.SampleResult{PromptCacheHitTokens: 6, PromptLogprobs: []float32{0, -1, -2},
		TopkPromptLogprobs: [][]tinker.TokenLogprob{{{Token: 1, Logprob: -1}}},
		Sequences: []tinker.SampledSequence{
			{StopReason: tinker.StopReasonStop, Tokens: []int32{1, 2, 3}, Logprobs: []float32{-1, -2, -3}},
			{StopReason: tinker.StopReasonLength, Tokens: []int32{5}}, {StopReason: tinker.StopReasonStop},
		}}
	encoded := must[[]byte](t)(tinker.EncodeSample(result))
	const text = `{"type":"sample","sequences":[{"stop_reason":"stop","tokens":[1,2,3],"logprobs":[-1,-2e-3,null]},` +
		`{"tokens": [ 5 ]},{"tokens":[]}],"prompt_logprobs":[null,-1.5],"topk_prompt_logprobs":[null,[[1,-2.5]]],` +
		`"prompt_cache_hit_tokens": 6}`
	for media, body := range map[string][]byte{tinker.ContentProtobuf: encoded, tinker.ContentJSON: []byte(text)} {
		for _, size := range []int{1, 5, len(body)} {
			got := NewResult(media)
			pieces(got, body, size)
			if got.Sampled() != 4 || got.Cached() != 6 {
				t.Errorf("%s in pieces of %d: %d sampled, %d cached, want 4 and 6", media, size, got.Sampled(), got.Cached())
			}
		}
	}
}

// FuzzData compares the counter with the decoder for bodies that can be decoded.
func FuzzData(f *testing.F) {
	for _, d := range [][]tinker.Datum{nil, data(), data()[:1]} {
		encoded, err := tinker.EncodeForwardBackward(tinker.ForwardBackwardRequest{ModelID: "m", Data: d})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		got := NewData()
		pieces(got, body, max(1, size%64))
		read, err := tinker.DecodeForwardBackward(body)
		if err != nil || got.Err() != nil {
			return
		}
		var want int64
		for _, datum := range read.Data {
			for _, chunk := range datum.ModelInput.Chunks {
				want += int64(len(chunk.Tokens))
			}
		}
		if got.Tokens() < want {
			t.Errorf("%d tokens, want at least %d", got.Tokens(), want)
		}
	})
}

// BenchmarkPrompt counts a prompt of 1,000 tokens.
func BenchmarkPrompt(b *testing.B) {
	encoded, err := json.Marshal(tinker.Text(make([]int32, 1000)))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(encoded)))
	for b.Loop() {
		Prompt(encoded)
	}
}
