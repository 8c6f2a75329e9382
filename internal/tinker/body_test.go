// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decodeText decodes JSON into a value of type T, or stops the test.
func decodeText[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return out
}

func TestDefaultsOfBodies(t *testing.T) {
	rank := DefaultLora()
	rank.Rank, rank.TrainMLP = 8, false
	adam := DefaultAdam()
	adam.LearningRate = 1
	sampling := DefaultSampling()
	sampling.Temperature = 0
	config := DefaultServerConfig()
	config.MaxChunkLen, config.UsePyqwestTransport = 5, false
	cases := map[string]struct{ want, got any }{
		"an adapter trains everything": {rank, decodeText[LoraConfig](t, `{"rank":8,"train_mlp":false}`)},
		"a model without an adapter":   {LoraConfig{}, decodeText[CreateModelRequest](t, `{"session_id":"s"}`).Lora},
		"Adam has betas":               {adam, decodeText[AdamParams](t, `{"learning_rate":1}`)},
		"sampling is of all tokens":    {sampling, decodeText[SamplingParams](t, `{"temperature":0}`)},
		"one sample is drawn": {SampleRequest{NumSamples: 1, SamplingParams: DefaultSampling()},
			decodeText[SampleRequest](t, "{}")},
		"a server has limits": {config, decodeText[ServerConfig](t,
			`{"fwdbwd_max_chunk_len":5,"use_pyqwest_transport":false,"new_flag":[1]}`)},
		"metadata becomes text": {
			Metadata{"a": "x", "b": "1", "c": `{"d":[1,null]}`, "e": "null", "f": "true"},
			decodeText[Metadata](t, `{"a":"x","b":1,"c":{"d": [1, null]},"e":null,"f":true}`),
		},
		"no metadata":       {Metadata(nil), decodeText[Metadata](t, "null")},
		"stop strings":      {Stop{Strings: []string{"a", "b"}}, decodeText[Stop](t, `["a","b"]`)},
		"stop tokens":       {Stop{Tokens: []int32{1, 2}}, decodeText[Stop](t, "[1,2]")},
		"a stop string":     {Stop{Strings: []string{"a"}}, decodeText[Stop](t, `"a"`)},
		"no stop":           {Stop{}, decodeText[Stop](t, "null")},
		"large numbers":     {int64(1)<<62 + 1, *decodeText[SampleRequest](t, `{"seq_id":4611686018427387905}`).SeqID},
		"optimizer metrics": {OptimStepResult{}, decodeText[OptimStepResult](t, `{"metrics":null}`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidBodies(t *testing.T) {
	for name, into := range map[string]any{
		"adapter": &LoraConfig{}, "Adam": &AdamParams{}, "sampling": &SamplingParams{}, "sample": &SampleRequest{},
		"configuration": &ServerConfig{},
		"metadata":      &Metadata{}, "stop": &Stop{}, "optimizer": &OptimStepResult{}, "tensor": &Tensor{},
	} {
		t.Run(name, func(t *testing.T) {
			if err := json.Unmarshal([]byte("[{}]"), into); err == nil {
				t.Errorf("decoded %v", into)
			}
		})
	}
}

func TestBodiesInJSON(t *testing.T) {
	cases := map[string]struct {
		value any
		want  string
	}{
		"stop strings": {SamplingParams{Stop: Stop{Strings: []string{"a"}}},
			`{"stop":["a"],"temperature":0,"top_k":0,"top_p":0}`},
		"stop tokens": {SamplingParams{Stop: Stop{Tokens: []int32{7}}},
			`{"stop":[7],"temperature":0,"top_k":0,"top_p":0}`},
		"no stop": {SamplingParams{}, `{"temperature":0,"top_k":0,"top_p":0}`},
		"a validation": {ErrorResponse{Detail: []ValidationIssue{{Loc: []string{"body", "model_id"}, Msg: "Field required",
			Type: "missing"}}}, `{"detail":[{"loc":["body","model_id"],"msg":"Field required","type":"missing"}]}`},
		"a detail": {ErrorResponse{Detail: "Model not found"}, `{"detail":"Model not found"}`},
		"a pending poll": {TryAgain{Type: TypeTryAgain, RequestID: "r", QueueState: QueueActive},
			`{"type":"try_again","request_id":"r","queue_state":"active","queue_state_reason":null}`},
		"a failed result": {FailedResult{Error: "m", Category: CategoryUser}, `{"error":"m","category":"user"}`},
		"an ephemeral save": {
			SaveSamplerRequest{ModelID: "M", SamplingSessionSeq: new(int64(0)), SeqID: 5, Type: TypeSaveSampler},
			`{"model_id":"M","sampling_session_seq_id":0,"seq_id":5,"type":"save_weights_for_sampler"}`,
		},
		"a datum of older clients": {
			ForwardBackwardJSON{ModelID: "m", SeqID: 1, Backward: &ForwardBackwardInput{LossFn: "ppo",
				Data: []Datum{goldenRequestValue().Data[0]}}},
			`{"model_id":"m","seq_id":1,"forward_backward_input":{"data":[{"model_input":{"chunks":[{"type":"encoded_text","tokens":[1,2,300]}]},` +
				`"loss_fn_inputs":{"target_tokens":{"data":[2,300,4],"dtype":"int64","shape":[3]},"weights":{"data":[0,1,1],"dtype":"float32","shape":[3]}}}],"loss_fn":"ppo"}}`,
		},
		"a result for older clients": {
			ForwardBackwardResult{LossFnOutputType: OutputArrayRecord,
				LossFnOutputs: []map[string]Tensor{{"logprobs": Floats([]float32{-1})}},
				Metrics:       map[string]float64{"loss:sum": 2.5}},
			`{"loss_fn_output_type":"ArrayRecord","loss_fn_outputs":[{"logprobs":{"data":[-1],"dtype":"float32","shape":[1]}}],"metrics":{"loss:sum":2.5}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tc.value)
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestTextTokens(t *testing.T) {
	cases := map[string]struct {
		input ModelInput
		want  []int32
		text  bool
	}{
		"One chunk of text": {input: Text([]int32{1, 2}), want: []int32{1, 2}, text: true},
		"Two chunks of text": {input: ModelInput{Chunks: []Chunk{{Type: ChunkText, Tokens: []int32{1}},
			{Type: ChunkText, Tokens: []int32{2}}}}, want: []int32{1, 2}, text: true},
		"Nothing": {text: true},
		"An image among text": {input: ModelInput{Chunks: []Chunk{{Type: ChunkText, Tokens: []int32{1}},
			{Type: ChunkImage}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, text := tc.input.TextTokens()
			if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.text {
				t.Errorf("TextTokens: %v, (-want +got):\n%s", text, diff)
			}
		})
	}
}
