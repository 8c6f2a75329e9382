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

// transferError reports that a group was damaged in transfer, or was written by a build with other digests. It is an
// error of the connection: the group itself may well be valid.
type transferError struct{ err *rl.FieldError }

// Error implements error.
func (e *transferError) Error() string { return "receiving a group: " + e.err.Error() }

// Unwrap returns the cause.
func (e *transferError) Unwrap() error { return e.err }

func transferErrorf(field, format string, values ...any) error {
	return &transferError{err: &rl.FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}}
}

// body reads the pieces that follow a header. Its error is a *transferError when they do not match the header, and
// otherwise the stream's; io.EOF comes after the bytes that the header announces.
type body struct {
	left    int64
	receive func() (*pb.SubmitFrame, error)
	piece   []byte
	err     error
}

func newBody(header *pb.SubmitHeader, receive func() (*pb.SubmitFrame, error)) *body {
	b := &body{left: header.GetBytes(), receive: receive}
	if b.left < 0 || b.left > MaxGroupBytes {
		b.err = transferErrorf("bytes", "are %d, more than %d", b.left, MaxGroupBytes)
	}
	return b
}

// Read implements io.Reader.
func (b *body) Read(to []byte) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	if len(b.piece) == 0 && b.err == nil {
		b.piece, b.err = b.next()
	}
	if len(b.piece) == 0 {
		return 0, b.err
	}
	n := copy(to, b.piece)
	b.piece = b.piece[n:]
	return n, nil
}

// next returns the next piece.
func (b *body) next() ([]byte, error) {
	frame, err := b.receive()
	if errors.Is(err, io.EOF) && b.left > 0 {
		return nil, transferErrorf("bytes", "are %d fewer than announced", b.left)
	}
	if err != nil {
		return nil, err
	}
	piece := frame.GetPiece()
	if len(piece) == 0 || len(piece) > MaxFrameBytes {
		return nil, transferErrorf("piece", "has %d bytes, not 1 to %d", len(piece), MaxFrameBytes)
	}
	if b.left -= int64(len(piece)); b.left < 0 {
		return nil, transferErrorf("bytes", "are %d more than announced", -b.left)
	}
	return piece, nil
}

// receiveGroup decodes the body after a header, member by member as it arrives, and checks that it is the group that
// the header announces. It returns the group with its digest.
func receiveGroup(header *pb.SubmitHeader, receive func() (*pb.SubmitFrame, error)) (rl.Group, rl.Digest, error) {
	body := newBody(header, receive)
	group, err := readGroup(body)
	// The rest says whether an invalid group was sent, or a valid one was damaged.
	if _, damaged := io.Copy(io.Discard, body); damaged != nil {
		return rl.Group{}, rl.Digest{}, damaged
	}
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
