// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/tinker/tinkerpb"
)

const (
	goldenRequest = "0a09733a747261696e3a3010011a640a100a0e0a0c01000000020000002c01000012300a0d7461726765745f746f6b656e73121f" +
		"0a1802000000000000002c0100000000000004000000000000001802220103121e0a077765696768747312130a0c000000000000803f0000803f" +
		"1801220103220d63726f73735f656e74726f7079"
	goldenOutput = "0a0b41727261795265636f7264124b0a0b41727261795265636f7264123a0a086c6f6770726f6273122e0a10000080bf0000c0bf" +
		"000080bf000000bf121800000000000000000c000000000000001000000000000000180118021a130a086c6f73733a73756d110000000000000440"
	goldenSample = "0a160801120805000000060000001a08000080be000080bf12080000c07f000000c01a280a1000000000000000000700000009000000" +
		"1210804fc3c7804fc3c7000000bf0000c0bf18022002"
)

func goldenRequestValue() ForwardBackwardRequest {
	return ForwardBackwardRequest{
		ModelID: "s:train:0", SeqID: 1, Loss: Loss{Name: "cross_entropy"},
		Data: []Datum{{
			ModelInput: Text([]int32{1, 2, 300}),
			LossFnInputs: map[string]Tensor{
				InputTargetTokens: Ints([]int64{2, 300, 4}),
				InputWeights:      Floats([]float32{0, 1, 1}),
			},
		}},
	}
}

func goldenOutputValue() ForwardBackwardResult {
	return ForwardBackwardResult{
		LossFnOutputType: OutputArrayRecord,
		LossFnOutputs: []map[string]Tensor{
			{InputLogprobs: Floats([]float32{-1, -1.5, -1})},
			{InputLogprobs: Floats([]float32{-0.5})},
		},
		Metrics: map[string]float64{"loss:sum": 2.5},
	}
}

func goldenSampleValue() SampleResult {
	return SampleResult{
		Sequences: []SampledSequence{{StopReason: StopReasonLength, Tokens: []int32{5, 6},
			Logprobs: []float32{-0.25, -1}}},
		PromptLogprobs:     []float32{float32(math.NaN()), -2},
		TopkPromptLogprobs: [][]TokenLogprob{nil, {{7, -0.5}, {9, -1.5}}},
	}
}

// codec is one of the package's three codecs, and its message.
type codec[T any] struct {
	encode  func(T) ([]byte, error)
	decode  func([]byte) (T, error)
	message proto.Message
}

// check encodes the value and compares the message and its length with the golden bytes, and decodes the golden bytes
// into the value. Libraries differ in the position of a oneof within a message, so the order of the bytes may differ.
func (c codec[T]) check(t *testing.T, golden string, value T) {
	t.Helper()
	raw, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.encode(value)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	want, got := c.message, c.message.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(raw, want); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(body, got); err != nil {
		t.Fatalf("own bytes: %v", err)
	}
	if !proto.Equal(want, got) || len(body) != len(raw) {
		t.Errorf("encoded %x, want %x", body, raw)
	}
	back, err := c.decode(raw)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if diff := cmp.Diff(value, back, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
}

func TestGoldenBytes(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		codec[ForwardBackwardRequest]{
			EncodeForwardBackward, DecodeForwardBackward, &tinkerpb.ForwardBackwardRequest{},
		}.check(t, goldenRequest, goldenRequestValue())
	})
	t.Run("output", func(t *testing.T) {
		codec[ForwardBackwardResult]{
			EncodeOutput, DecodeOutput, &tinkerpb.ForwardBackwardOutput{},
		}.check(t, goldenOutput, goldenOutputValue())
	})
	t.Run("sample", func(t *testing.T) {
		codec[SampleResult]{
			EncodeSample, DecodeSample, &tinkerpb.SampleResponse{},
		}.check(t, goldenSample, goldenSampleValue())
	})
}
