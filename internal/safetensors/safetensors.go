// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package safetensors reads and writes the headers of files in the format safetensors: eight bytes with the length of a
// header, the header in JSON, which says where each tensor is, and the tensors.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Tensor describes a tensor of a file.
type Tensor struct {
	// Type is the type of an element, for example F32 or BF16.
	Type  string `json:"dtype"`
	Shape []int  `json:"shape"`
	// Offsets are where the tensor begins and ends, in bytes after the header.
	Offsets [2]int64 `json:"data_offsets"`
}

// Size returns the number of bytes of the tensor.
func (t Tensor) Size() int64 { return t.Offsets[1] - t.Offsets[0] }

const (
	// prefix is the number of bytes that hold the length of the header.
	prefix = 8
	// alignment is a divisor of the length of a header that EncodeHeader writes.
	alignment = 8
	// maxHeader limits the header, as the library safetensors does.
	maxHeader = 100_000_000
	// metadata is the key of the header that describes the file instead of a tensor.
	metadata = "__metadata__"
)

// ReadHeader returns the tensors of a file of the given size, by their names, and the number of bytes before them. A
// file that does not end where its tensors do is an error.
func ReadHeader(r io.ReaderAt, size int64) (tensors map[string]Tensor, begin int64, err error) {
	var length [prefix]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, 0, fmt.Errorf("reading the length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-prefix {
		return nil, 0, fmt.Errorf("the header has %d bytes, the file %d", n, size)
	}
	var header map[string]json.RawMessage
	if err := json.NewDecoder(io.NewSectionReader(r, prefix, int64(n))).Decode(&header); err != nil {
		return nil, 0, fmt.Errorf("decoding the header: %w", err)
	}
	delete(header, metadata)
	tensors, begin = make(map[string]Tensor, len(header)), prefix+int64(n)
	end := int64(0)
	for name, text := range header {
		var t Tensor
		if err := json.Unmarshal(text, &t); err != nil {
			return nil, 0, fmt.Errorf("decoding tensor %q: %w", name, err)
		}
		if t.Offsets[0] < 0 || t.Size() < 0 {
			return nil, 0, fmt.Errorf("tensor %q is at the offsets %v", name, t.Offsets)
		}
		tensors[name], end = t, max(end, t.Offsets[1])
	}
	if have := size - begin; end != have {
		return nil, 0, fmt.Errorf("the tensors have %d bytes, the file has %d", end, have)
	}
	return tensors, begin, nil
}

// EncodeHeader returns the bytes of a file that come before its tensors, and the names in the order of their tensors.
// It sets the offsets of the tensors.
func EncodeHeader(tensors map[string]Tensor) (begin []byte, names []string, err error) {
	header := map[string]any{metadata: map[string]string{"format": "pt"}}
	names = slices.Sorted(maps.Keys(tensors))
	end := int64(0)
	for _, name := range names {
		t := tensors[name]
		t.Offsets = [2]int64{end, end + t.Size()}
		header[name], end = t, t.Offsets[1]
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the header: %w", err)
	}
	for len(text)%alignment != 0 {
		text = append(text, ' ')
	}
	begin = binary.LittleEndian.AppendUint64(make([]byte, 0, prefix+len(text)), uint64(len(text)))
	return append(begin, text...), names, nil
}
