// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokencount

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Prompt counts the tokens of the JSON of a prompt, or of the data of forward_backward: the elements of lists named
// tokens, and images by their expected_tokens.
func Prompt(encoded []byte) int64 {
	var scan jsonScan
	_, _ = scan.Write(encoded)
	scan.end()
	return scan.text + scan.expected
}

// Data counts the tokens of the body of forward_backward or forward in protobuf, which is written to it in pieces.
type Data struct{ scan *protoScan }

// NewData returns a counter at zero.
func NewData() *Data { return &Data{newProtoScan(request)} }

// Write counts a piece of the body, which is not compressed.
func (d *Data) Write(p []byte) (int, error) { return d.scan.Write(p) }

// Tokens returns the tokens of the text, and those that are expected of the images.
func (d *Data) Tokens() int64 { return d.scan.counts.text + d.scan.counts.image }

// ForwardOnly reports whether the body asks for no gradient.
func (d *Data) ForwardOnly() bool { return d.scan.counts.forward }

// Err returns an error if the body has what no client writes, such as a group, so that it was not read to its end. Such a
// body must not pass: the server may read more of it.
func (d *Data) Err() error {
	if d.scan.invalid {
		return errors.New("the body is not a protobuf message without groups")
	}
	return nil
}

// maxWindow limits the memory for the decompression of a body.
const maxWindow = 64 << 20

// ReadData counts a body with a content encoding.
func ReadData(encoding string, body []byte) (*Data, error) {
	data := NewData()
	if encoding != tinker.EncodingZstd {
		_, _ = data.Write(body)
		return data, data.Err()
	}
	decoder, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("preparing decompression: %w", err)
	}
	defer decoder.Close()
	if _, err := io.Copy(data, decoder); err != nil {
		return nil, fmt.Errorf("decompressing data: %w", err)
	}
	return data, data.Err()
}

// Result counts the tokens of a result of asample, which is written to it in pieces.
type Result struct {
	proto *protoScan
	json  *jsonScan
}

// NewResult returns a counter for a result of a media type.
func NewResult(media string) *Result {
	if media == tinker.ContentProtobuf {
		return &Result{proto: newProtoScan(response)}
	}
	return &Result{json: &jsonScan{}}
}

// Write counts a piece of the result.
func (r *Result) Write(p []byte) (int, error) {
	if r.proto != nil {
		return r.proto.Write(p)
	}
	return r.json.Write(p)
}

// Sampled returns the tokens of all sequences.
func (r *Result) Sampled() int64 {
	if r.proto != nil {
		return r.proto.counts.sampled
	}
	return r.json.text
}

// Cached returns the tokens of the prompt that the server says it had in its cache.
func (r *Result) Cached() int64 {
	if r.proto != nil {
		return r.proto.counts.cached
	}
	return r.json.cached
}
