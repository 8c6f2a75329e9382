// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncodeDecode(t *testing.T) {
	flat := randomFlat(rand.New(rand.NewPCG(14, 1)))
	flat[0], flat[1] = 0, float32(math.Copysign(0, -1))
	once, err := Decode(Encode(flat))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range once {
		if math.Abs(float64(v-flat[i])) > math.Abs(float64(flat[i]))/(1<<16) {
			t.Fatalf("parameter %d is %v after %v", i, v, flat[i])
		}
	}
	twice, err := Decode(Encode(once))
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(once, twice) {
		t.Errorf("packing again changes the parameters (-want +got):\n%.300s", cmp.Diff(once, twice))
	}
}

func TestDecodeInvalidData(t *testing.T) {
	if _, err := Decode([]byte("no model")); err == nil {
		t.Error("garbage was decoded")
	}
	if _, err := Decode(Encode(make([]float32, 3))); !errors.Is(err, errSize) {
		t.Errorf("three parameters were decoded: %v", err)
	}
}
