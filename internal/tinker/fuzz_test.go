// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fuzzCodec checks that a decoded value survives encoding and decoding.
func fuzzCodec[T any](f *testing.F, golden string, encode func(T) ([]byte, error), decode func([]byte) (T, error)) {
	seed, err := hex.DecodeString(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := decode(body)
		if err != nil {
			return
		}
		encoded, err := encode(value)
		if err != nil {
			t.Fatalf("encoding the decoded value: %v", err)
		}
		again, err := decode(encoded)
		if err != nil {
			t.Fatalf("decoding the encoded value: %v", err)
		}
		if diff := cmp.Diff(value, again, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}

func FuzzDecodeForwardBackward(f *testing.F) {
	fuzzCodec(f, goldenRequest, func(r ForwardBackwardRequest) ([]byte, error) {
		r.SeqID &= 1<<31 - 1
		return EncodeForwardBackward(r)
	}, func(body []byte) (ForwardBackwardRequest, error) {
		r, err := DecodeForwardBackward(body)
		r.SeqID &= 1<<31 - 1
		return r, err
	})
}

func FuzzDecodeOutput(f *testing.F) { fuzzCodec(f, goldenOutput, EncodeOutput, DecodeOutput) }

func FuzzDecodeSample(f *testing.F) { fuzzCodec(f, goldenSample, EncodeSample, DecodeSample) }

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"tinker://s:train:0/weights/0010", "tinker://m/sampler_weights/a.b",
		"tinker://m/weights/..", "tinker://"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := ParsePath(text)
		if err != nil {
			return
		}
		if path.String() != text {
			t.Errorf("%q became %q", text, path)
		}
		if again, err := ParsePath(path.String()); err != nil || again != path {
			t.Errorf("%q is %+v, then %+v, %v", text, path, again, err)
		}
	})
}

// FuzzBodies decodes JSON into every body that has its own decoder.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"data":[1,2],"dtype":"float32","shape":[2]}`,
		`{"data":[7],"dtype":"int64","shape":[1,2],"sparse_crow_indices":[0,1],"sparse_col_indices":[1]}`,
		`["a"]`, `{"a":{"b":[null]}}`, `{"num_samples":2,"sampling_params":{"stop":[1]}}`, `{"metrics":{"a":null}}`,
		`{"rank":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, into := range []any{
			&Metadata{}, &Stop{}, &SampleRequest{}, &SamplingParams{}, &LoraConfig{}, &AdamParams{}, &OptimStepResult{},
			&ServerConfig{},
			&CreateModelRequest{}, &ForwardBackwardJSON{}, &CheckpointList{}, &TrainingRunList{},
		} {
			if json.Unmarshal(body, into) != nil {
				continue
			}
			if _, err := json.Marshal(into); err != nil {
				t.Errorf("encoding %T: %v", into, err)
			}
		}
		var tensor Tensor
		if json.Unmarshal(body, &tensor) == nil && tensor.Validate() != nil {
			t.Errorf("an invalid tensor is accepted: %+v", tensor)
		}
	})
}
