// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/tinker/tinkerpb"
)

func TestOutputRoundTrip(t *testing.T) {
	bf16 := Tensor{DType: BFloat16, Shape: []int64{2}, Float: []float32{1, -2}}
	cases := map[string]struct {
		outputs []map[string]Tensor
		records int
	}{
		"No outputs": {},
		"Datums of one kind share a record": {
			outputs: []map[string]Tensor{{"logprobs": Floats([]float32{1, 2})}, {"logprobs": Floats([]float32{3})},
				{"logprobs": Floats(nil)}}, records: 1,
		},
		"Ragged columns have records of their own": {
			outputs: []map[string]Tensor{
				{"logprobs": Floats([]float32{1, 2, 3, 4}, 2, 2)}, {"logprobs": Floats([]float32{1, 2, 3}, 1, 3)},
				{"logprobs": Floats([]float32{4, 5, 6}, 1, 3)},
			},
			records: 2,
		},
		"Other types and other names have records of their own": {
			outputs: []map[string]Tensor{{"logprobs": bf16}, {"logprobs": Floats([]float32{1, 2})},
				{"logprobs": Floats([]float32{1}), "ids": Ints([]int64{4})}}, records: 3,
		},
		"Three dimensions": {outputs: []map[string]Tensor{{"x": Floats([]float32{1, 2, 3, 4}, 1, 2, 2)}}, records: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := ForwardBackwardResult{LossFnOutputType: OutputArrayRecord, LossFnOutputs: tc.outputs,
				Metrics: map[string]float64{"loss:sum": math.NaN()}}
			body, err := EncodeOutput(want)
			if err != nil {
				t.Fatal(err)
			}
			wire := &tinkerpb.ForwardBackwardOutput{}
			if err := proto.Unmarshal(body, wire); err != nil || len(wire.GetLossFnOutputs()) != tc.records {
				t.Errorf("%d records, want %d, %v", len(wire.GetLossFnOutputs()), tc.records, err)
			}
			got, err := DecodeOutput(body)
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestEncodeInvalidOutputs(t *testing.T) {
	for name, tensor := range map[string]Tensor{"sparse": sparseInts(), "without a type": {},
		"of another shape": Floats([]float32{1}, 2)} {
		t.Run(name, func(t *testing.T) {
			if _, err := EncodeOutput(ForwardBackwardResult{LossFnOutputs: []map[string]Tensor{{"x": tensor}}}); err == nil {
				t.Error("encoded")
			}
		})
	}
}

// batch returns a field of floats with the given offsets and columns.
func batch(floats int, offsets []int64, columns ...int64) *tinkerpb.BatchedTensor {
	return &tinkerpb.BatchedTensor{
		Data: make([]byte, 4*floats), Offsets: numberBytes(offsets), Dtype: tinkerpb.DType_FLOAT32, TrailingShape: columns,
	}
}

func TestRecords(t *testing.T) {
	two := batch(3, []int64{0, 8, 12})
	cases := map[string]struct {
		record *tinkerpb.ArrayRecord
		datums int
		fails  bool
	}{
		"The number of datums may be left out": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{
			"a": two}}, datums: 2},
		"An empty record has no datums":     {record: &tinkerpb.ArrayRecord{}},
		"Datums without fields are missing": {record: &tinkerpb.ArrayRecord{NumDatums: 2}, fails: true},
		"A field of fewer datums": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{
			"a": two, "b": batch(1, []int64{0, 4})}}, fails: true},
		"A field without datums": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": two,
			"b": batch(0, []int64{0})}}, fails: true},
		"Another number of datums": {record: &tinkerpb.ArrayRecord{NumDatums: 3,
			Fields: map[string]*tinkerpb.BatchedTensor{"a": two}}, fails: true},
		"Offsets that are cut": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{
			"a": {Dtype: tinkerpb.DType_INT32, Offsets: []byte{0}}}}, fails: true},
		"No offsets": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(1,
			nil)}}, fails: true},
		"Offsets that start late": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(1,
			[]int64{4, 4})}}, fails: true},
		"Offsets that end early": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(2,
			[]int64{0, 4})}}, fails: true},
		"Offsets that fall": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(1,
			[]int64{0, 8, 4})}}, fails: true},
		"Offsets within an element": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(1,
			[]int64{0, 2, 4})}}, fails: true},
		"Rows that are cut": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(3,
			[]int64{0, 12}, 2)}}, fails: true},
		"Rows without columns": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(0,
			[]int64{0, 0}, 0)}}, fails: true},
		"Columns out of bounds": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": batch(0,
			[]int64{0, 0}, -1)}}, fails: true},
		"A type that is unspecified": {record: &tinkerpb.ArrayRecord{Fields: map[string]*tinkerpb.BatchedTensor{"a": {}}},
			fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body, err := proto.Marshal(&tinkerpb.ForwardBackwardOutput{LossFnOutputs: []*tinkerpb.ArrayRecord{tc.record}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeOutput(body)
			if len(got.LossFnOutputs) != tc.datums || (err != nil) != tc.fails {
				t.Errorf("DecodeOutput = %+v, %v", got, err)
			}
		})
	}
	if _, err := DecodeOutput([]byte{0xff}); err == nil {
		t.Error("decoded invalid protobuf")
	}
}

func TestSampleRoundTrip(t *testing.T) {
	want := SampleResult{
		Sequences: []SampledSequence{
			{StopReason: StopReasonStop, Tokens: []int32{1, 2}, Logprobs: []float32{-0.5, 0},
				TopkLogprobs: [][]TokenLogprob{{{1, -0.5}, {4, -2}}, nil}},
			{StopReason: StopReasonLength, Tokens: []int32{3}},
			{StopReason: StopReasonLength},
		},
		PromptLogprobs:     []float32{float32(math.NaN()), -2, float32(math.Inf(-1))},
		TopkPromptLogprobs: [][]TokenLogprob{nil, {{7, -1}}, {{0, -3}, {1, -4}}},
		TargetPromptLogprobs: &Tensor{DType: Float32, Shape: []int64{2, 3}, Float: []float32{-1, -2},
			Sparse: &Sparse{Rows: []int64{0, 1, 2}, Cols: []int64{2, 0}}},
		PromptCacheHitTokens: 12,
	}
	body, err := EncodeSample(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSample(body)
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if _, err := EncodeSample(SampleResult{Sequences: []SampledSequence{{StopReason: "eos"}}}); err == nil {
		t.Error("encoded an unknown stop reason")
	}
}

func TestDecodeInvalidSamples(t *testing.T) {
	sequence := func(s *tinkerpb.SampledSequence) *tinkerpb.SampleResponse {
		return &tinkerpb.SampleResponse{Sequences: []*tinkerpb.SampledSequence{s}}
	}
	topk := func(ids, logprobs int, k, rows uint32) *tinkerpb.SampleResponse {
		return &tinkerpb.SampleResponse{TopkPromptLogprobs: &tinkerpb.TopkPromptLogprobs{
			TokenIds: make([]byte, ids), Logprobs: make([]byte, logprobs), K: k, PromptLength: rows,
		}}
	}
	for name, response := range map[string]*tinkerpb.SampleResponse{
		"a reason that is not known":     sequence(&tinkerpb.SampledSequence{StopReason: 2}),
		"tokens that are cut":            sequence(&tinkerpb.SampledSequence{Tokens: []byte{1}}),
		"log-probabilities that are cut": sequence(&tinkerpb.SampledSequence{Logprobs: []byte{1}}),
		"fewer log-probabilities": sequence(&tinkerpb.SampledSequence{Tokens: make([]byte, 8),
			Logprobs: make([]byte, 4)}),
		"a prompt that is cut":             {PromptLogprobs: []byte{1}},
		"alternatives that are cut":        topk(3, 4, 1, 1),
		"their log-probabilities cut":      topk(4, 3, 1, 1),
		"fewer alternatives than declared": topk(4, 4, 1, 2),
		"more alternatives than declared":  topk(12, 12, 2, 1),
		"an absurd declaration":            topk(4, 4, math.MaxUint32, math.MaxUint32),
	} {
		t.Run(name, func(t *testing.T) {
			body, err := proto.Marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := DecodeSample(body); err == nil {
				t.Errorf("decoded %+v", got)
			}
		})
	}
	if _, err := DecodeSample([]byte{0xff}); err == nil {
		t.Error("decoded invalid protobuf")
	}
	if got, err := DecodeSample(nil); err != nil || got.TopkPromptLogprobs != nil {
		t.Errorf("an empty body has no samples: %+v, %v", got, err)
	}
}
