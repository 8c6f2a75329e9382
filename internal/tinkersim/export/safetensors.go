// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// tensor is a dense row-major tensor.
type tensor struct {
	shape  []int
	values []float32
}

// entry describes a tensor in the header of a file of safetensors.
type entry struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// alignment is what the length of the header is a multiple of.
const alignment = 8

// encodeTensors returns tensors in the format safetensors, which programs for language models read: the length of a
// header in JSON, the header, which says where each tensor is, and the numbers in the order of the names.
func encodeTensors(tensors map[string]tensor) ([]byte, error) {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	names, end := slices.Sorted(maps.Keys(tensors)), 0
	for _, name := range names {
		t := tensors[name]
		size := 4 * len(t.values)
		header[name] = entry{Type: "F32", Shape: t.shape, Offsets: [2]int{end, end + size}}
		end += size
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("encoding the header: %w", err)
	}
	for len(text)%alignment != 0 {
		text = append(text, ' ')
	}
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, alignment+len(text)+end), uint64(len(text)))
	out = append(out, text...)
	for _, name := range names {
		for _, v := range tensors[name].values {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out, nil
}
