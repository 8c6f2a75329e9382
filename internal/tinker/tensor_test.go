// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/tinker/tinkerpb"
)

// sparseInts has 3 rows of 4: (0,1)=7, (2,0)=8, (2,3)=0.
func sparseInts() Tensor {
	return Tensor{
		DType: Int64, Shape: []int64{3, 4}, Int: []int64{7, 8, 0}, Sparse: &Sparse{Rows: []int64{0, 1, 1, 3},
			Cols: []int64{1, 0, 3}},
	}
}

func TestTensors(t *testing.T) {
	cases := map[string]struct {
		tensor Tensor
		valid  bool
	}{
		"One dimension":  {Floats([]float32{1, 2}), true},
		"Two dimensions": {Ints([]int64{1, 2, 3, 4, 5, 6}, 2, 3), true},
		"No elements":    {Floats(nil), true},
		"No shape":       {Tensor{DType: Int32, Int: []int64{1}}, true},
		"Sparse rows":    {sparseInts(), true},
		"Sparse rows of floats": {Tensor{DType: Float32, Shape: []int64{1, 1}, Float: []float32{1},
			Sparse: &Sparse{Rows: []int64{0, 1}, Cols: []int64{0}}}, true},
		"An unknown type":                   {Tensor{DType: "float64"}, false},
		"Integers in a tensor of floats":    {Tensor{DType: Float32, Int: []int64{1}}, false},
		"Floats in a tensor of integers":    {Tensor{DType: Int64, Float: []float32{1}}, false},
		"A shape of another size":           {Floats([]float32{1, 2}, 3), false},
		"A negative dimension":              {Floats([]float32{1, 2}, -1, -2), false},
		"A dimension out of all bounds":     {Floats(nil, math.MaxInt64), false},
		"Dimensions that overflow together": {Floats(nil, 1<<20, 1<<20, 1<<20, 1<<20), false},
		"A sparse tensor of one dimension":  {Tensor{DType: Int64, Shape: []int64{3}, Sparse: &Sparse{}}, false},
		"A sparse tensor out of bounds":     {Tensor{DType: Int64, Shape: []int64{-1, 4}, Sparse: &Sparse{}}, false},
		"Too few rows": {Tensor{DType: Int64, Shape: []int64{3, 4}, Sparse: &Sparse{Rows: []int64{0}}},
			false},
		"Rows that fall": {Tensor{DType: Int64, Shape: []int64{2, 4}, Int: []int64{1},
			Sparse: &Sparse{Rows: []int64{0, 2, 1}, Cols: []int64{0}}}, false},
		"Rows that do not start at 0": {Tensor{DType: Int64, Shape: []int64{1, 4}, Int: []int64{1},
			Sparse: &Sparse{Rows: []int64{1, 1}, Cols: []int64{0}}}, false},
		"A column outside": {Tensor{DType: Int64, Shape: []int64{1, 4}, Int: []int64{1},
			Sparse: &Sparse{Rows: []int64{0, 1}, Cols: []int64{4}}}, false},
		"A negative column": {Tensor{DType: Int64, Shape: []int64{1, 4}, Int: []int64{1},
			Sparse: &Sparse{Rows: []int64{0, 1}, Cols: []int64{-1}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.tensor.Validate(); (err == nil) != tc.valid {
				t.Fatalf("Validate = %v", err)
			}
			if _, err := tc.tensor.Dense(); (err == nil) != tc.valid {
				t.Fatalf("Dense = %v", err)
			}
			if tc.valid {
				checkTensorForms(t, tc.tensor)
			}
		})
	}
}

// checkTensorForms encodes a tensor in protobuf and JSON, and decodes it.
func checkTensorForms(t *testing.T, want Tensor) {
	t.Helper()
	got, err := decodeTensor(encodeTensor(want))
	if err != nil {
		t.Fatalf("protobuf: %v", err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatalf("JSON: %v", err)
	}
	again := decodeText[Tensor](t, string(text))
	for form, tensor := range map[string]Tensor{"protobuf": got, "JSON": again} {
		if len(want.Shape) == 0 {
			want.Shape, tensor.Shape = nil, nil
		}
		if diff := cmp.Diff(want, tensor, cmp.Transformer("empty",
			func(v []float32) []float32 { return append([]float32{}, v...) }),
			cmp.Transformer("emptyInts", func(v []int64) []int64 { return append([]int64{}, v...) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
}

func TestDense(t *testing.T) {
	got, err := sparseInts().Dense()
	if diff := cmp.Diff(Ints([]int64{0, 7, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0}, 3, 4), got); diff != "" || err != nil {
		t.Errorf("Dense: %v, (-want +got):\n%s", err, diff)
	}
	floats := Tensor{DType: Float32, Shape: []int64{2, 2}, Float: []float32{0.5},
		Sparse: &Sparse{Rows: []int64{0, 0, 1}, Cols: []int64{1}}}
	got, err = floats.Dense()
	if diff := cmp.Diff(Floats([]float32{0, 0, 0, 0.5}, 2, 2), got); diff != "" || err != nil {
		t.Errorf("Dense: %v, (-want +got):\n%s", err, diff)
	}
}

func TestInvalidTensorJSON(t *testing.T) {
	for name, text := range map[string]string{
		"no type":            `{"data":[1]}`,
		"fractions of int64": `{"data":[1.5],"dtype":"int64"}`,
		"no data":            `{"dtype":"float32","shape":[1]}`,
		"another shape":      `{"data":[1,2],"dtype":"float32","shape":[3]}`,
		"half of the sparse": `{"data":[1],"dtype":"int64","shape":[1,2],"sparse_crow_indices":[0,1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var tensor Tensor
			if err := json.Unmarshal([]byte(text), &tensor); err == nil {
				t.Errorf("decoded %+v", tensor)
			}
		})
	}
	if _, err := json.Marshal(Floats([]float32{float32(math.NaN())})); err == nil {
		t.Error("NaN is encoded in JSON")
	}
}

func TestElementTypes(t *testing.T) {
	cases := map[string]struct {
		tensor Tensor
		data   []byte
	}{
		"float32":                 {Floats([]float32{1, -0.5}), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf}},
		"int64":                   {Ints([]int64{-2}), []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		"int32, widened":          {Tensor{DType: Int32, Int: []int64{-2, 1}}, []byte{0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0}},
		"bfloat16, widened":       {Tensor{DType: BFloat16, Float: []float32{1, -2.5}}, []byte{0x80, 0x3f, 0x20, 0xc0}},
		"bfloat16 has infinities": {Tensor{DType: BFloat16, Float: []float32{float32(math.Inf(-1))}}, []byte{0x80, 0xff}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.data, elementBytes(tc.tensor)); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			got, err := decodeElements(tc.tensor.DType, tc.data)
			tc.tensor.Shape = nil
			if diff := cmp.Diff(tc.tensor, got); diff != "" || err != nil {
				t.Errorf("elements: %v, (-want +got):\n%s", err, diff)
			}
			if _, err := decodeElements(tc.tensor.DType, tc.data[1:]); err == nil {
				t.Error("a truncated buffer is accepted")
			}
		})
	}
}

func TestBFloat16Rounding(t *testing.T) {
	for bits, want := range map[uint32]uint16{
		0x3f800000: 0x3f80, 0x3f807fff: 0x3f80, 0x3f808000: 0x3f80, 0x3f808001: 0x3f81, 0x3f818000: 0x3f82,
		0x7f7fffff: 0x7f80,
	} {
		if got := bfloat16(math.Float32frombits(bits)); got != want {
			t.Errorf("%#x rounds to %#x, want %#x", bits, got, want)
		}
	}
	for _, bits := range []uint32{0x7f800001, 0x7fc00000, 0xffffffff} {
		if got := math.Float32frombits(uint32(bfloat16(math.Float32frombits(bits))) << 16); got == got {
			t.Errorf("%#x is not NaN any more", bits)
		}
	}
}

func TestRequestRoundTrip(t *testing.T) {
	want := ForwardBackwardRequest{
		ModelID: "m", SeqID: math.MaxInt32, ForwardOnly: true,
		Loss: Loss{Name: "cispo", Config: map[string]float64{"clip_high_threshold": 4}},
		Data: []Datum{{
			ModelInput: ModelInput{Chunks: []Chunk{
				{Type: ChunkText, Tokens: []int32{1, -1}}, {Type: ChunkImage, Data: []byte{1}, Format: "png",
					ExpectedTokens: new(int32(9))},
				{Type: ChunkDmel, Dmel: []byte{2, 3}},
			}},
			LossFnInputs: map[string]Tensor{
				"target_tokens": sparseInts(), "weights": Floats([]float32{1, 2, 3, 4}, 2, 2),
				"advantages": Floats([]float32{-0.5}),
			},
		}, {ModelInput: Text([]int32{3}), LossFnInputs: map[string]Tensor{}}},
	}
	body, err := EncodeForwardBackward(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeForwardBackward(body)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	again, err := EncodeForwardBackward(got)
	if err != nil || string(again) != string(body) {
		t.Errorf("equal requests have different bytes: %v", err)
	}
}

func TestEncodeInvalidRequests(t *testing.T) {
	for name, request := range map[string]ForwardBackwardRequest{
		"a number of more than 31 bits": {SeqID: math.MaxInt32 + 1},
		"a negative number":             {SeqID: -1},
		"a chunk of JSON alone": {Data: []Datum{
			{ModelInput: ModelInput{Chunks: []Chunk{{Type: ChunkImagePointer}}}}}},
		"an invalid tensor": {Data: []Datum{{LossFnInputs: map[string]Tensor{"x": {}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := EncodeForwardBackward(request); err == nil {
				t.Error("encoded")
			}
		})
	}
}

func TestDecodeInvalidRequests(t *testing.T) {
	tensor := func(t *tinkerpb.Tensor) *tinkerpb.Datum {
		return &tinkerpb.Datum{LossFnInputs: map[string]*tinkerpb.Tensor{"x": t}}
	}
	text := func(tokens []byte) *tinkerpb.Datum {
		return &tinkerpb.Datum{ModelInput: []*tinkerpb.Chunk{
			{Chunk: &tinkerpb.Chunk_EncodedText{EncodedText: &tinkerpb.EncodedTextChunk{Tokens: tokens}}}}}
	}
	sparse := func(values, rows, cols []byte) *tinkerpb.Datum {
		return tensor(&tinkerpb.Tensor{Dtype: tinkerpb.DType_INT64, Shape: []int64{1, 1},
			Encoding: &tinkerpb.Tensor_SparseCsr{
				SparseCsr: &tinkerpb.SparseCsr{Values: values, CrowIndices: rows, ColIndices: cols},
			}})
	}
	for name, datum := range map[string]*tinkerpb.Datum{
		"a type that is unspecified": tensor(&tinkerpb.Tensor{}),
		"tokens that are cut":        text([]byte{1, 2, 3}),
		"a chunk without a type":     {ModelInput: []*tinkerpb.Chunk{{}}},
		"elements that are cut": tensor(&tinkerpb.Tensor{Dtype: tinkerpb.DType_INT64,
			Encoding: &tinkerpb.Tensor_Dense{Dense: []byte{1}}}),
		"another shape":            tensor(&tinkerpb.Tensor{Dtype: tinkerpb.DType_INT64, Shape: []int64{2}}),
		"rows that are cut":        sparse(nil, []byte{1}, nil),
		"columns that are cut":     sparse(nil, make([]byte, 16), []byte{1}),
		"columns without elements": sparse(nil, make([]byte, 16), make([]byte, 8)),
	} {
		t.Run(name, func(t *testing.T) {
			body, err := proto.Marshal(&tinkerpb.ForwardBackwardRequest{Data: []*tinkerpb.Datum{datum}})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := DecodeForwardBackward(body); err == nil {
				t.Errorf("decoded %+v", got)
			}
		})
	}
	if _, err := DecodeForwardBackward([]byte{0xff}); err == nil {
		t.Error("decoded invalid protobuf")
	}
}

func TestCompression(t *testing.T) {
	body := make([]byte, 100_000)
	packed, err := Compress(body)
	if err != nil || len(packed) > 1000 {
		t.Fatalf("%d bytes, %v", len(packed), err)
	}
	for encoding, in := range map[string][]byte{EncodingZstd: packed, "": body, "identity": body} {
		if got, err := Decompress(encoding, in); err != nil || string(got) != string(body) {
			t.Errorf("%q: %d bytes, %v", encoding, len(got), err)
		}
	}
	if _, err := Decompress("br", body); err == nil {
		t.Error("an unknown encoding is accepted")
	}
	if _, err := Decompress(EncodingZstd, body); err == nil {
		t.Error("an uncompressed body is decompressed")
	}
}
