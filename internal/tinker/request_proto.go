// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/tinker/tinkerpb"
)

// ContentProtobuf is the media type of protobuf bodies; all others are ContentJSON.
const (
	ContentProtobuf = "application/x-protobuf"
	ContentJSON     = "application/json"
)

var dtypes = map[DType]tinkerpb.DType{
	Float32:  tinkerpb.DType_FLOAT32,
	Int64:    tinkerpb.DType_INT64,
	Int32:    tinkerpb.DType_INT32,
	BFloat16: tinkerpb.DType_BFLOAT16,
}

func decodeDType(wire tinkerpb.DType) (DType, error) {
	for dtype, number := range dtypes {
		if number == wire {
			return dtype, nil
		}
	}
	return "", fmt.Errorf("dtype %d is unknown", wire)
}

// marshal is deterministic: it orders maps by key.
func marshal(message proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(message)
}

// EncodeForwardBackward encodes the body of POST forward_backward. The bytes of equal requests are equal.
func EncodeForwardBackward(r ForwardBackwardRequest) ([]byte, error) {
	if r.SeqID < 0 || r.SeqID > math.MaxInt32 {
		return nil, fmt.Errorf("sequence id %d is out of range", r.SeqID)
	}
	wire := &tinkerpb.ForwardBackwardRequest{
		ModelId: r.ModelID, SeqId: int32(r.SeqID), ForwardOnly: r.ForwardOnly,
		LossFn: string(r.Loss.Name), LossFnConfig: r.Loss.Config,
		Data: make([]*tinkerpb.Datum, len(r.Data)),
	}
	for i, datum := range r.Data {
		encoded, err := encodeDatum(datum)
		if err != nil {
			return nil, fmt.Errorf("encoding datum %d: %w", i, err)
		}
		wire.Data[i] = encoded
	}
	return marshal(wire)
}

func encodeDatum(d Datum) (*tinkerpb.Datum, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	out := &tinkerpb.Datum{LossFnInputs: make(map[string]*tinkerpb.Tensor, len(d.LossFnInputs))}
	for _, chunk := range d.ModelInput.Chunks {
		out.ModelInput = append(out.ModelInput, encodeChunk(chunk))
	}
	for name, tensor := range d.LossFnInputs {
		out.LossFnInputs[name] = encodeTensor(tensor)
	}
	return out, nil
}

// encodeChunk encodes a chunk that Datum.Validate accepts.
func encodeChunk(c Chunk) *tinkerpb.Chunk {
	switch c.Type {
	case ChunkImage:
		image := &tinkerpb.ImageChunk{Data: c.Data, Format: c.Format, ExpectedTokens: c.ExpectedTokens}
		return &tinkerpb.Chunk{Chunk: &tinkerpb.Chunk_Image{Image: image}}
	case ChunkDmel:
		return &tinkerpb.Chunk{Chunk: &tinkerpb.Chunk_Dmel{Dmel: &tinkerpb.DmelChunk{Dmel: c.Dmel}}}
	}
	text := &tinkerpb.EncodedTextChunk{Tokens: numberBytes(c.Tokens)}
	return &tinkerpb.Chunk{Chunk: &tinkerpb.Chunk_EncodedText{EncodedText: text}}
}

// encodeTensor encodes a valid tensor.
func encodeTensor(t Tensor) *tinkerpb.Tensor {
	out := &tinkerpb.Tensor{Dtype: dtypes[t.DType], Shape: t.Shape}
	if t.Sparse == nil {
		out.Encoding = &tinkerpb.Tensor_Dense{Dense: elementBytes(t)}
		return out
	}
	out.Encoding = &tinkerpb.Tensor_SparseCsr{SparseCsr: &tinkerpb.SparseCsr{
		Values: elementBytes(t), CrowIndices: numberBytes(t.Sparse.Rows), ColIndices: numberBytes(t.Sparse.Cols),
	}}
	return out
}

// DecodeForwardBackward decodes the body of POST forward_backward and checks its tensors. Sparse tensors stay sparse.
func DecodeForwardBackward(body []byte) (ForwardBackwardRequest, error) {
	wire := &tinkerpb.ForwardBackwardRequest{}
	if err := proto.Unmarshal(body, wire); err != nil {
		return ForwardBackwardRequest{}, fmt.Errorf("decoding forward_backward: %w", err)
	}
	out := ForwardBackwardRequest{
		ModelID: wire.GetModelId(), SeqID: int64(wire.GetSeqId()), ForwardOnly: wire.GetForwardOnly(),
		Loss: Loss{Name: LossName(wire.GetLossFn()), Config: wire.GetLossFnConfig()},
		Data: make([]Datum, len(wire.GetData())),
	}
	for i, datum := range wire.GetData() {
		decoded, err := decodeDatum(datum)
		if err != nil {
			return ForwardBackwardRequest{}, fmt.Errorf("decoding datum %d: %w", i, err)
		}
		out.Data[i] = decoded
	}
	return out, nil
}

func decodeDatum(wire *tinkerpb.Datum) (Datum, error) {
	out := Datum{LossFnInputs: make(map[string]Tensor, len(wire.GetLossFnInputs()))}
	for _, chunk := range wire.GetModelInput() {
		decoded, err := decodeChunk(chunk)
		if err != nil {
			return Datum{}, err
		}
		out.ModelInput.Chunks = append(out.ModelInput.Chunks, decoded)
	}
	for name, tensor := range wire.GetLossFnInputs() {
		decoded, err := decodeTensor(tensor)
		if err != nil {
			return Datum{}, fmt.Errorf("tensor %s: %w", name, err)
		}
		out.LossFnInputs[name] = decoded
	}
	return out, nil
}

func decodeChunk(wire *tinkerpb.Chunk) (Chunk, error) {
	switch chunk := wire.GetChunk().(type) {
	case *tinkerpb.Chunk_EncodedText:
		tokens, err := bytesNumbers[int32](chunk.EncodedText.GetTokens())
		return Chunk{Type: ChunkText, Tokens: tokens}, err
	case *tinkerpb.Chunk_Image:
		image := chunk.Image
		return Chunk{
			Type: ChunkImage, Data: image.GetData(), Format: image.GetFormat(), ExpectedTokens: image.ExpectedTokens,
		}, nil
	case *tinkerpb.Chunk_Dmel:
		return Chunk{Type: ChunkDmel, Dmel: chunk.Dmel.GetDmel()}, nil
	}
	return Chunk{}, fmt.Errorf("chunk has an unknown type")
}

func decodeTensor(wire *tinkerpb.Tensor) (Tensor, error) {
	dtype, err := decodeDType(wire.GetDtype())
	if err != nil {
		return Tensor{}, err
	}
	values, sparse := wire.GetDense(), wire.GetSparseCsr()
	if sparse != nil {
		values = sparse.GetValues()
	}
	out, err := decodeElements(dtype, values)
	if err != nil {
		return Tensor{}, err
	}
	out.Shape = oneDimension(wire.GetShape(), out.Len())
	if sparse != nil {
		if out.Sparse, err = decodeSparse(sparse); err != nil {
			return Tensor{}, err
		}
	}
	return out, out.Validate()
}

func decodeSparse(wire *tinkerpb.SparseCsr) (*Sparse, error) {
	rows, err := bytesNumbers[int64](wire.GetCrowIndices())
	if err != nil {
		return nil, err
	}
	cols, err := bytesNumbers[int64](wire.GetColIndices())
	return &Sparse{Rows: rows, Cols: cols}, err
}
