// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "testing"

func TestDatumSize(t *testing.T) {
	cases := map[string]struct {
		datum Datum
		want  int64
	}{
		"4 bytes a token and the elements of tensors": {datum: goldenRequestValue().Data[0], want: 3*4 + 3*8 + 3*4},
		"images and audio by their bytes": {
			datum: Datum{ModelInput: ModelInput{Chunks: []Chunk{{Type: ChunkImage, Data: make([]byte, 7)},
				{Type: ChunkDmel, Dmel: make([]byte, 5)}}}}, want: 12,
		},
		"sparse tensors by their elements and 8 bytes an index": {
			datum: Datum{LossFnInputs: map[string]Tensor{"x": {DType: Float32, Float: []float32{1, 2},
				Sparse: &Sparse{Rows: []int64{0, 1, 2}, Cols: []int64{0, 1}}}}},
			want: 2*4 + 5*8,
		},
		"bfloat16 by 2 bytes": {datum: Datum{LossFnInputs: map[string]Tensor{"x": {DType: BFloat16, Float: []float32{1, 2}}}},
			want: 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.datum.Size(); got != tc.want {
				t.Errorf("Size = %d, want %d", got, tc.want)
			}
		})
	}
}
