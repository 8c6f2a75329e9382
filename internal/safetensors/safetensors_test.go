// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeaderIsReadAsItWasEncoded(t *testing.T) {
	begin, names, err := EncodeHeader(map[string]Tensor{
		"b": {Type: "BF16", Shape: []int{2, 3}, Offsets: [2]int64{100, 112}},
		"a": {Type: "F32", Shape: []int{1}, Offsets: [2]int64{7, 11}},
	})
	if err != nil || len(begin)%alignment != 0 {
		t.Fatalf("%d bytes, %v", len(begin), err)
	}
	file := append(begin, make([]byte, 16)...)
	got, at, err := ReadHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil || at != int64(len(begin)) {
		t.Fatalf("the tensors begin at %d, %v, want %d", at, err, len(begin))
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := map[string]Tensor{
		"a": {Type: "F32", Shape: []int{1}, Offsets: [2]int64{0, 4}},
		"b": {Type: "BF16", Shape: []int{2, 3}, Offsets: [2]int64{4, 16}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
}

func TestReadHeaderRefusesInvalidFiles(t *testing.T) {
	file := func(header, body string) string {
		return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + body
	}
	for want, content := range map[string]string{
		"reading the length":         "short",
		"the header has 9 bytes":     string(binary.LittleEndian.AppendUint64(nil, 9)) + "{}",
		"decoding the header":        file("<p>", ""),
		`decoding tensor "a"`:        file(`{"a":1}`, ""),
		"offsets [4 0]":              file(`{"a":{"data_offsets":[4,0]}}`, "1234"),
		"offsets [-4 4]":             file(`{"a":{"data_offsets":[-4,4]}}`, "1234"),
		"have 4 bytes, the file has": file(`{"a":{"data_offsets":[0,4]}}`, "12345"),
	} {
		if _, _, err := ReadHeader(strings.NewReader(content), int64(len(content))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("ReadHeader: %v, want %q", err, want)
		}
	}
}
