// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/tinker/tinkerpb"
)

// OutputArrayRecord is the type of the outputs of every loss.
const OutputArrayRecord = "ArrayRecord"

// EncodeOutput encodes the result of forward_backward in protobuf. Consecutive datums share a record if their outputs
// agree in names, types and all dimensions but the first.
func EncodeOutput(r ForwardBackwardResult) ([]byte, error) {
	wire := &tinkerpb.ForwardBackwardOutput{LossFnOutputType: r.LossFnOutputType, Metrics: r.Metrics}
	for rest := r.LossFnOutputs; len(rest) > 0; {
		n := 1
		for n < len(rest) && sameLayout(rest[0], rest[n]) {
			n++
		}
		record, err := encodeRecord(rest[:n])
		if err != nil {
			return nil, fmt.Errorf("encoding outputs from datum %d: %w", len(r.LossFnOutputs)-len(rest), err)
		}
		wire.LossFnOutputs = append(wire.LossFnOutputs, record)
		rest = rest[n:]
	}
	return marshal(wire)
}

func sameLayout(a, b map[string]Tensor) bool {
	return maps.EqualFunc(a, b, func(x, y Tensor) bool {
		return x.DType == y.DType && slices.Equal(trailing(x), trailing(y))
	})
}

// trailing returns all dimensions except the first, which is the dimension of tokens.
func trailing(t Tensor) []int64 {
	if len(t.Shape) < 2 {
		return nil
	}
	return t.Shape[1:]
}

func encodeRecord(data []map[string]Tensor) (*tinkerpb.ArrayRecord, error) {
	record := &tinkerpb.ArrayRecord{
		TypeTag: OutputArrayRecord, NumDatums: int64(len(data)), Fields: map[string]*tinkerpb.BatchedTensor{},
	}
	for name, first := range data[0] {
		batch := &tinkerpb.BatchedTensor{Dtype: dtypes[first.DType], TrailingShape: trailing(first)}
		offsets := []int64{0}
		for _, datum := range data {
			tensor := datum[name]
			if err := validateOutput(tensor); err != nil {
				return nil, fmt.Errorf("output %s: %w", name, err)
			}
			batch.Data = append(batch.Data, elementBytes(tensor)...)
			offsets = append(offsets, int64(len(batch.Data)))
		}
		batch.Offsets = numberBytes(offsets)
		record.Fields[name] = batch
	}
	return record, nil
}

func validateOutput(t Tensor) error {
	if t.Sparse != nil {
		return fmt.Errorf("outputs cannot be sparse")
	}
	return t.Validate()
}

// DecodeOutput decodes the result of forward_backward from protobuf. It concatenates the outputs of several records.
func DecodeOutput(body []byte) (ForwardBackwardResult, error) {
	wire := &tinkerpb.ForwardBackwardOutput{}
	if err := proto.Unmarshal(body, wire); err != nil {
		return ForwardBackwardResult{}, fmt.Errorf("decoding outputs: %w", err)
	}
	out := ForwardBackwardResult{LossFnOutputType: wire.GetLossFnOutputType(), Metrics: wire.GetMetrics()}
	for i, record := range wire.GetLossFnOutputs() {
		data, err := decodeRecord(record)
		if err != nil {
			return ForwardBackwardResult{}, fmt.Errorf("decoding record %d of the outputs: %w", i, err)
		}
		out.LossFnOutputs = append(out.LossFnOutputs, data...)
	}
	return out, nil
}

func decodeRecord(record *tinkerpb.ArrayRecord) ([]map[string]Tensor, error) {
	var data []map[string]Tensor
	for _, name := range slices.Sorted(maps.Keys(record.GetFields())) {
		tensors, err := decodeBatch(record.GetFields()[name])
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		if data == nil {
			data = make([]map[string]Tensor, len(tensors))
		}
		if len(tensors) != len(data) {
			return nil, fmt.Errorf("output %s has %d datums, another %d", name, len(tensors), len(data))
		}
		for i, tensor := range tensors {
			if data[i] == nil {
				data[i] = make(map[string]Tensor, len(record.GetFields()))
			}
			data[i][name] = tensor
		}
	}
	if want := record.GetNumDatums(); want != 0 && want != int64(len(data)) {
		return nil, fmt.Errorf("outputs are of %d datums, not of %d", len(data), want)
	}
	return data, nil
}

func decodeBatch(batch *tinkerpb.BatchedTensor) ([]Tensor, error) {
	dtype, err := decodeDType(batch.GetDtype())
	if err != nil {
		return nil, err
	}
	offsets, err := bytesNumbers[int64](batch.GetOffsets())
	if err != nil {
		return nil, err
	}
	data := batch.GetData()
	if err := checkOffsets(offsets, len(data)); err != nil {
		return nil, err
	}
	row, err := elements(batch.GetTrailingShape())
	if err != nil {
		return nil, err
	}
	var out []Tensor
	for i, start := range offsets[:len(offsets)-1] {
		tensor, err := decodeElements(dtype, data[start:offsets[i+1]])
		if err != nil {
			return nil, err
		}
		if row == 0 || int64(tensor.Len())%row != 0 {
			return nil, fmt.Errorf("%d elements do not fill rows of shape %v", tensor.Len(), batch.GetTrailingShape())
		}
		tensor.Shape = append([]int64{int64(tensor.Len()) / row}, batch.GetTrailingShape()...)
		out = append(out, tensor)
	}
	return out, nil
}

func checkOffsets(offsets []int64, size int) error {
	if len(offsets) == 0 || offsets[0] != 0 || offsets[len(offsets)-1] != int64(size) || !slices.IsSorted(offsets) {
		return fmt.Errorf("offsets do not rise from 0 to %d", size)
	}
	return nil
}
