// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/binary"
	"math"

	"github.com/tinker-operator/tinker-operator/internal/safetensors"
)

// tensor is a dense row-major tensor.
type tensor struct {
	shape  []int
	values []float32
}

// encodeTensors returns a file of tensors, in the order of their names.
func encodeTensors(tensors map[string]tensor) ([]byte, error) {
	header, size := make(map[string]safetensors.Tensor, len(tensors)), 0
	for name, t := range tensors {
		bytes := 4 * len(t.values)
		header[name] = safetensors.Tensor{Type: "F32", Shape: t.shape, Offsets: [2]int64{0, int64(bytes)}}
		size += bytes
	}
	begin, names, err := safetensors.EncodeHeader(header)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(begin)+size), begin...)
	for _, name := range names {
		for _, v := range tensors[name].values {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out, nil
}
