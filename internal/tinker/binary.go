// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/binary"
	"fmt"
	"math"
)

// All buffers of numbers in the API are little-endian.

func int32Bytes(values []int32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out
}

func int64Bytes(values []int64) []byte {
	out := make([]byte, 0, 8*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return out
}

func float32Bytes(values []float32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func bfloat16Bytes(values []float32) []byte {
	out := make([]byte, 0, 2*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint16(out, bfloat16(v))
	}
	return out
}

// bfloat16 rounds to the nearest value, ties to even; NaN stays NaN.
func bfloat16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func bytesInt32(data []byte) ([]int32, error) {
	if err := checkMultiple(data, 4); err != nil {
		return nil, err
	}
	out := make([]int32, len(data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

func bytesInt64(data []byte) ([]int64, error) {
	if err := checkMultiple(data, 8); err != nil {
		return nil, err
	}
	out := make([]int64, len(data)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return out, nil
}

func bytesFloat32(data []byte) ([]float32, error) {
	if err := checkMultiple(data, 4); err != nil {
		return nil, err
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

func checkMultiple(data []byte, size int) error {
	if len(data)%size != 0 {
		return fmt.Errorf("buffer of %d bytes does not hold elements of %d", len(data), size)
	}
	return nil
}

// elementBytes encodes the elements of a tensor in the tensor's type.
func elementBytes(t Tensor) []byte {
	switch t.DType {
	case Int64:
		return int64Bytes(t.Int)
	case Int32:
		narrow := make([]int32, len(t.Int))
		for i, v := range t.Int {
			narrow[i] = int32(v)
		}
		return int32Bytes(narrow)
	case BFloat16:
		return bfloat16Bytes(t.Float)
	}
	return float32Bytes(t.Float)
}

// decodeElements returns a tensor of the type with the elements, and without a shape.
func decodeElements(dtype DType, data []byte) (Tensor, error) {
	out := Tensor{DType: dtype}
	switch dtype {
	case Int64:
		values, err := bytesInt64(data)
		out.Int = values
		return out, err
	case Int32:
		values, err := bytesInt32(data)
		out.Int = make([]int64, len(values))
		for i, v := range values {
			out.Int[i] = int64(v)
		}
		return out, err
	case BFloat16:
		if err := checkMultiple(data, 2); err != nil {
			return Tensor{}, err
		}
		out.Float = make([]float32, len(data)/2)
		for i := range out.Float {
			out.Float[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
		return out, nil
	}
	values, err := bytesFloat32(data)
	out.Float = values
	return out, err
}
