// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// reading returns a function that decodes bytes as a message of the exchange. err is the error of reading the message;
// ok is false if the bytes are not such a message.
func reading[M proto.Message, T any](message M, from func(M) (T, error)) func([]byte) (ok bool, err error) {
	return func(body []byte) (bool, error) {
		proto.Reset(message)
		if proto.Unmarshal(body, message) != nil {
			return false, nil
		}
		_, err := from(message)
		return true, err
	}
}

// FuzzMessages reads bytes as every kind of message. An error must name the invalid field, since it is sent to the
// other side.
func FuzzMessages(f *testing.F) {
	seeds := []proto.Message{
		&pb.HelloRequest{}, &pb.HelloReply{}, &pb.RenewRequest{}, &pb.RenewReply{}, &pb.SubmitReply{},
		&pb.SubmitFrame{Frame: &pb.SubmitFrame_Header{Header: &pb.SubmitHeader{Bytes: 9, Digest: "c"}}},
		&pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: []byte("piece")}},
	}
	for _, seed := range seeds {
		body, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	readers := map[string]func([]byte) (bool, error){
		"hello":       reading(&pb.HelloRequest{}, helloRequestFromProto),
		"hello reply": reading(&pb.HelloReply{}, helloReplyFromProto),
		"renewal":     reading(&pb.RenewRequest{}, renewalFromProto),
		"directive":   reading(&pb.RenewReply{}, directiveFromProto),
		"verdict":     reading(&pb.SubmitReply{}, func(r *SubmitReply) (*SubmitReply, error) { return r, checkStatus(r) }),
		"lease": reading(&pb.Lease{}, func(l *pb.Lease) (Lease, error) {
			var d decoder
			lease := d.lease("lease", l)
			return lease, d.err
		}),
		"frame": reading(&pb.SubmitFrame{}, func(frame *pb.SubmitFrame) (rl.Group, error) {
			group, _, err := groupOf(
				&pb.SubmitHeader{Key: frame.GetHeader().GetKey(), Digest: frame.GetHeader().GetDigest()}, frame.GetPiece())
			return group, err
		}),
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, read := range readers {
			ok, err := read(body)
			var wrong *rl.FieldError
			if ok && err != nil && !errors.As(err, &wrong) {
				t.Errorf("the error of the %s names no field: %v", name, err)
			}
		}
	})
}
