// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokencount

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Prompt counts the tokens of a body of asample, or of forward_backward in JSON: the elements of lists named tokens,
// and images by their expected_tokens.
func Prompt(encoded []byte) int64 {
	text := NewText()
	_, _ = text.Write(encoded)
	return text.Tokens()
}

// Text counts the same tokens as Prompt, of a body that is written to it in pieces.
type Text struct{ scan jsonScan }

// NewText returns a counter at zero.
func NewText() *Text { return &Text{} }

// Write counts a piece of the body.
func (t *Text) Write(p []byte) (int, error) { return t.scan.Write(p) }

// Tokens returns the number of tokens. The whole body must have been written.
func (t *Text) Tokens() int64 {
	t.scan.endNumber()
	return t.scan.text + t.scan.expected
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

// Err returns an error if the body has what no client writes, such as a group, so that it was not read to its end. Such
// a body must not pass: the server may read more of it.
func (d *Data) Err() error {
	if d.scan.invalid {
		return errors.New("the body is not a protobuf message without groups")
	}
	return nil
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
