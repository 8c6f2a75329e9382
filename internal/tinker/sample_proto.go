// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/tinker/tinkerpb"
)

// maskedLogprob, with token 0, fills the empty cells of a top-k table.
const maskedLogprob = float32(-99999)

var stopReasons = map[StopReason]tinkerpb.StopReason{
	StopReasonStop:   tinkerpb.StopReason_STOP,
	StopReasonLength: tinkerpb.StopReason_LENGTH,
}

// EncodeSample encodes the result of asample in protobuf.
func EncodeSample(r SampleResult) ([]byte, error) {
	wire := &tinkerpb.SampleResponse{PromptCacheHitTokens: int32(r.PromptCacheHitTokens)}
	for i, sequence := range r.Sequences {
		reason, ok := stopReasons[sequence.StopReason]
		if !ok {
			return nil, fmt.Errorf("stop reason %q of sample %d is unknown", sequence.StopReason, i)
		}
		encoded := &tinkerpb.SampledSequence{StopReason: reason, Tokens: numberBytes(sequence.Tokens)}
		if sequence.Logprobs != nil {
			encoded.Logprobs = numberBytes(sequence.Logprobs)
		}
		if sequence.TopkLogprobs != nil {
			encoded.TopkSampledLogprobs = encodeTopk(sequence.TopkLogprobs)
		}
		wire.Sequences = append(wire.Sequences, encoded)
	}
	if r.PromptLogprobs != nil {
		wire.PromptLogprobs = numberBytes(r.PromptLogprobs)
	}
	if r.TopkPromptLogprobs != nil {
		wire.TopkPromptLogprobs = encodeTopk(r.TopkPromptLogprobs)
	}
	if r.TargetPromptLogprobs != nil {
		wire.TargetPromptLogprobs = encodeTensor(*r.TargetPromptLogprobs)
	}
	return marshal(wire)
}

func encodeTopk(rows [][]TokenLogprob) *tinkerpb.TopkPromptLogprobs {
	k := 1
	for _, row := range rows {
		k = max(k, len(row))
	}
	ids := make([]int32, len(rows)*k)
	logprobs := make([]float32, len(rows)*k)
	for i := range logprobs {
		logprobs[i] = maskedLogprob
	}
	for i, row := range rows {
		for j, cell := range row {
			ids[i*k+j], logprobs[i*k+j] = cell.Token, cell.Logprob
		}
	}
	return &tinkerpb.TopkPromptLogprobs{
		TokenIds: numberBytes(ids), Logprobs: numberBytes(logprobs), K: uint32(k), PromptLength: uint32(len(rows)),
	}
}

// DecodeSample decodes the result of asample from protobuf.
func DecodeSample(body []byte) (SampleResult, error) {
	wire := &tinkerpb.SampleResponse{}
	if err := proto.Unmarshal(body, wire); err != nil {
		return SampleResult{}, fmt.Errorf("decoding samples: %w", err)
	}
	out := SampleResult{PromptCacheHitTokens: int(wire.GetPromptCacheHitTokens())}
	for i, sequence := range wire.GetSequences() {
		decoded, err := decodeSequence(sequence)
		if err != nil {
			return SampleResult{}, fmt.Errorf("decoding sample %d: %w", i, err)
		}
		out.Sequences = append(out.Sequences, decoded)
	}
	var err error
	if out.PromptLogprobs, err = optionalFloats(wire.GetPromptLogprobs()); err != nil {
		return SampleResult{}, fmt.Errorf("decoding log-probabilities of the prompt: %w", err)
	}
	if out.TopkPromptLogprobs, err = decodeTopk(wire.GetTopkPromptLogprobs()); err != nil {
		return SampleResult{}, fmt.Errorf("decoding alternatives of the prompt: %w", err)
	}
	if wire.TargetPromptLogprobs != nil {
		target, err := decodeTensor(wire.GetTargetPromptLogprobs())
		if err != nil {
			return SampleResult{}, fmt.Errorf("decoding targets of the prompt: %w", err)
		}
		out.TargetPromptLogprobs = &target
	}
	return out, nil
}

func decodeSequence(wire *tinkerpb.SampledSequence) (SampledSequence, error) {
	out := SampledSequence{StopReason: StopReasonStop}
	switch wire.GetStopReason() {
	case tinkerpb.StopReason_STOP:
	case tinkerpb.StopReason_LENGTH:
		out.StopReason = StopReasonLength
	default:
		return SampledSequence{}, fmt.Errorf("stop reason %d is unknown", wire.GetStopReason())
	}
	var err error
	if out.Tokens, err = bytesNumbers[int32](wire.GetTokens()); err != nil {
		return SampledSequence{}, err
	}
	if out.Logprobs, err = optionalFloats(wire.GetLogprobs()); err != nil {
		return SampledSequence{}, err
	}
	if out.Logprobs != nil && len(out.Logprobs) != len(out.Tokens) {
		return SampledSequence{}, fmt.Errorf("%d log-probabilities of %d tokens", len(out.Logprobs), len(out.Tokens))
	}
	if out.TopkLogprobs, err = decodeTopk(wire.GetTopkSampledLogprobs()); err != nil {
		return SampledSequence{}, err
	}
	if out.TopkLogprobs != nil && len(out.TopkLogprobs) != len(out.Tokens) {
		return SampledSequence{}, fmt.Errorf("alternatives to %d of %d tokens", len(out.TopkLogprobs), len(out.Tokens))
	}
	return out, nil
}

// optionalFloats returns nil for an empty buffer.
func optionalFloats(data []byte) ([]float32, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return bytesNumbers[float32](data)
}

func decodeTopk(wire *tinkerpb.TopkPromptLogprobs) ([][]TokenLogprob, error) {
	k, rows := int(wire.GetK()), int(wire.GetPromptLength())
	if k == 0 || rows == 0 {
		return nil, nil
	}
	ids, err := bytesNumbers[int32](wire.GetTokenIds())
	if err != nil {
		return nil, err
	}
	logprobs, err := bytesNumbers[float32](wire.GetLogprobs())
	if err != nil {
		return nil, err
	}
	if len(ids) != len(logprobs) || len(ids)%k != 0 || len(ids)/k != rows {
		return nil, fmt.Errorf("%d ids and %d log-probabilities do not fill %d rows of %d", len(ids), len(logprobs), rows, k)
	}
	out := make([][]TokenLogprob, rows)
	for i := range out {
		out[i] = decodeRow(ids[i*k:(i+1)*k], logprobs[i*k:(i+1)*k])
	}
	return out, nil
}

// decodeRow drops the empty cells at the end; it returns nil if all cells are empty.
func decodeRow(ids []int32, logprobs []float32) []TokenLogprob {
	n := len(ids)
	for n > 0 && ids[n-1] == 0 && logprobs[n-1] == maskedLogprob {
		n--
	}
	if n == 0 || (ids[0] == 0 && logprobs[0] == maskedLogprob) {
		return nil
	}
	row := make([]TokenLogprob, n)
	for j := range row {
		row[j] = TokenLogprob{Token: ids[j], Logprob: logprobs[j]}
	}
	return row
}
