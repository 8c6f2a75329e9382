// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEncodeTensors compares with the bytes of the Python package safetensors 0.8 for the same tensors and
// metadata.
func TestEncodeTensors(t *testing.T) {
	got, err := encodeTensors(map[string]tensor{
		"b": {shape: []int{2, 2}, values: []float32{1, -2, 0.5, 3}},
		"a": {shape: []int{1}, values: []float32{7}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const header = `{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},` +
		`"b":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]}}   `
	want := "9000000000000000" + hex.EncodeToString([]byte(header)) + "0000e040" + "0000803f" + "000000c0" + "0000003f" +
		"00004040"
	if diff := cmp.Diff(want, hex.EncodeToString(got)); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
}
