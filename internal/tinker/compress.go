// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// EncodingZstd is the content encoding of compressed forward_backward bodies.
const EncodingZstd = "zstd"

// maxDecompressed limits the size of a decompressed body.
const maxDecompressed = 512 << 20

// Compress returns the body in zstd. It shares no encoder between calls because bodies are large and few.
func Compress(body []byte) ([]byte, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("preparing compression: %w", err)
	}
	return encoder.EncodeAll(body, nil), nil
}

// Decompress decodes a Content-Encoding, which may be empty, identity or zstd, up to 512 MiB.
func Decompress(encoding string, body []byte) ([]byte, error) {
	switch encoding {
	case "", "identity":
		return body, nil
	case EncodingZstd:
	default:
		return nil, fmt.Errorf("content encoding %q is not supported", encoding)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecompressed))
	if err != nil {
		return nil, fmt.Errorf("preparing decompression: %w", err)
	}
	defer decoder.Close()
	out, err := decoder.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing body: %w", err)
	}
	return out, nil
}
