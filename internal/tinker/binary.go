// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/binary"
	"fmt"
	"math"
)

// number is an element of the API's buffers, which are little-endian.
type number interface{ int32 | int64 | float32 }

func numberBytes[T number](values []T) []byte {
	// A slice of numbers of a fixed size is always encoded.
	out, _ := binary.Append(make([]byte, 0, binary.Size(values)), binary.LittleEndian, values)
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

func bytesNumbers[T number](data []byte) ([]T, error) {
	size := binary.Size(T(0))
	if err := checkMultiple(data, size); err != nil {
		return nil, err
	}
	out := make([]T, len(data)/size)
	_, err := binary.Decode(data, binary.LittleEndian, out)
	return out, err
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
		return numberBytes(t.Int)
	case Int32:
		narrow := make([]int32, len(t.Int))
		for i, v := range t.Int {
			narrow[i] = int32(v)
		}
		return numberBytes(narrow)
	case BFloat16:
		return bfloat16Bytes(t.Float)
	}
	return numberBytes(t.Float)
}

// decodeElements returns a tensor of the type with the elements, and without a shape.
func decodeElements(dtype DType, data []byte) (Tensor, error) {
	out := Tensor{DType: dtype}
	switch dtype {
	case Int64:
		values, err := bytesNumbers[int64](data)
		out.Int = values
		return out, err
	case Int32:
		values, err := bytesNumbers[int32](data)
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
	values, err := bytesNumbers[float32](data)
	out.Float = values
	return out, err
}
