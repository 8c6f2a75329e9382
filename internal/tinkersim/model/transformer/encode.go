// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
)

// keptBytes is the number of a parameter's four bytes that are written: sign, exponent and 15 more bits.
const keptBytes = 3

// Encode packs a flat vector of parameters, rounded to 16 significant bits, into a compressed form:
// the bytes of equal weight stand together, the highest first.
func Encode(flat []float32) []byte {
	planes := make([]byte, keptBytes*len(flat))
	for i, v := range flat {
		bits := math.Float32bits(v)
		bits += 0x7f + bits>>8&1
		for plane := range keptBytes {
			planes[plane*len(flat)+i] = byte(bits >> (24 - 8*plane))
		}
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression) // the level is valid
	_, _ = w.Write(planes)                               // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

var errSize = errors.New("wrong number of parameters")

// Decode unpacks the output of Encode.
func Decode(data []byte) ([]float32, error) {
	planes, err := io.ReadAll(flate.NewReader(bytes.NewReader(data)))
	if err != nil {
		return nil, fmt.Errorf("decompressing parameters: %w", err)
	}
	if len(planes) != keptBytes*Size {
		return nil, errSize
	}
	flat := make([]float32, Size)
	for i := range flat {
		var bits uint32
		for plane := range keptBytes {
			bits |= uint32(planes[plane*Size+i]) << (24 - 8*plane)
		}
		flat[i] = math.Float32frombits(bits)
	}
	return flat, nil
}
