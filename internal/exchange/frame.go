// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"fmt"
	"io"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// MaxFrameBytes bounds a frame of Submit; maxPieceBytes leaves room for the message around a piece.
const (
	MaxFrameBytes = 1 << 20
	maxPieceBytes = MaxFrameBytes - 16
)

// sendFrames sends a header and the body in pieces.
func sendFrames(header *pb.SubmitHeader, body []byte, send func(*pb.SubmitFrame) error) error {
	header.Bytes = int64(len(body))
	if err := send(&pb.SubmitFrame{Frame: &pb.SubmitFrame_Header{Header: header}}); err != nil {
		return err
	}
	for len(body) > 0 {
		n := min(len(body), maxPieceBytes)
		if err := send(&pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: body[:n]}}); err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

// transferError reports that what arrived is not what was sent, or was written by a build that digests otherwise. It is
// an error of the connection: the group itself may well be valid.
type transferError struct{ err *rl.FieldError }

// Error implements error.
func (e *transferError) Error() string { return "receiving a group: " + e.err.Error() }

// Unwrap gives the cause.
func (e *transferError) Unwrap() error { return e.err }

func transferErrorf(field, format string, values ...any) error {
	return &transferError{err: &rl.FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}}
}

// receiveBody joins the pieces that follow a header. The error is a *transferError when they do not match the
// header, and otherwise the stream's.
func receiveBody(header *pb.SubmitHeader, receive func() (*pb.SubmitFrame, error)) ([]byte, error) {
	if header.GetBytes() < 0 || header.GetBytes() > MaxGroupBytes {
		return nil, transferErrorf("bytes", "are %d, more than %d", header.GetBytes(), MaxGroupBytes)
	}
	// The announced size is trusted only so far; beyond that the body grows as it comes.
	body := make([]byte, 0, min(header.GetBytes(), MaxFrameBytes))
	for {
		frame, err := receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		piece := frame.GetPiece()
		if len(piece) == 0 || len(piece) > MaxFrameBytes {
			return nil, transferErrorf("piece", "has %d bytes, not 1 to %d", len(piece), MaxFrameBytes)
		}
		if int64(len(body)+len(piece)) > header.GetBytes() {
			return nil, transferErrorf("bytes", "are more than the %d announced", header.GetBytes())
		}
		body = append(body, piece...)
	}
	if int64(len(body)) != header.GetBytes() {
		return nil, transferErrorf("bytes", "are %d, not the %d announced", len(body), header.GetBytes())
	}
	return body, nil
}

// groupOf decodes the body and checks that it is the group that the header announces. It returns the group's
// digest, too.
func groupOf(header *pb.SubmitHeader, body []byte) (rl.Group, rl.Digest, error) {
	group, err := DecodeGroup(body)
	if err != nil {
		return rl.Group{}, rl.Digest{}, err
	}
	var d decoder
	key := d.key("key", header.GetKey())
	if d.err != nil {
		return rl.Group{}, rl.Digest{}, d.err
	}
	if key != group.Key {
		return rl.Group{}, rl.Digest{}, transferErrorf("key", "is not the header's")
	}
	digest := group.Digest()
	if digest.String() != header.GetDigest() {
		return rl.Group{}, rl.Digest{}, transferErrorf("digest", "is not the group's")
	}
	return group, digest, nil
}
