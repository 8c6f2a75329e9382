// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"testing"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestMessagesNameTheFieldThatIsWrong reads messages with one wrong field each, and checks that the error names the
// field.
func TestMessagesNameTheFieldThatIsWrong(t *testing.T) {
	badKey := &pb.GroupKey{Lineage: "none"}
	goodKey := keyToProto(exampleKey(1))
	stored := func(change func(g *pb.StoredGroup)) []*pb.StoredGroup {
		g := storedToProto(StoredGroup{Key: exampleKey(1)})
		change(g)
		return []*pb.StoredGroup{g}
	}
	hello := func(r *pb.HelloRequest) error { _, err := helloRequestFromProto(r); return err }
	reply := func(r *pb.HelloReply) error { _, err := helloReplyFromProto(r); return err }
	renewal := func(r *pb.RenewRequest) error { _, err := renewalFromProto(r); return err }
	directive := func(r *pb.RenewReply) error { _, err := directiveFromProto(r); return err }
	cases := map[string]error{
		"stored[0].key.lineage":          hello(&pb.HelloRequest{Stored: stored(func(g *pb.StoredGroup) { g.Key = badKey })}),
		"stored[0].outcome":              hello(&pb.HelloRequest{Stored: stored(func(g *pb.StoredGroup) { g.Outcome = 99 })}),
		"playing[1].lineage":             hello(&pb.HelloRequest{Playing: []*pb.GroupKey{goodKey, badKey}}),
		"wanted[0].lineage":              reply(&pb.HelloReply{Wanted: []*pb.GroupKey{badKey}}),
		"keep[0].key.lineage":            reply(&pb.HelloReply{Keep: []*pb.Lease{{Key: badKey}}}),
		"progress[0].key.lineage":        renewal(&pb.RenewRequest{Progress: []*pb.Progress{{Key: badKey}}}),
		"revoked[0].lineage":             directive(&pb.RenewReply{Revoked: []*pb.GroupKey{badKey}}),
		"covered_evaluations[0].lineage": directive(&pb.RenewReply{CoveredEvaluations: []*pb.Evaluation{{Digest: "p"}}}),
		"rejected[0].key.lineage":        directive(&pb.RenewReply{Rejected: []*pb.RejectedGroup{{Key: badKey, Outcome: 6}}}),
		"rejected[0].outcome":            directive(&pb.RenewReply{Rejected: []*pb.RejectedGroup{{Key: goodKey}}}),
	}
	for field, err := range cases {
		var wrong *rl.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
	if err := directive(&pb.RenewReply{Wanted: []*pb.GroupKey{badKey}}); err == nil {
		t.Error("a wanted group without a lineage passed")
	}
	for _, status := range []SubmitStatus{-1, 5} {
		if err := checkStatus(&SubmitReply{Status: status}); err == nil {
			t.Errorf("checkStatus of %d: no error", status)
		}
	}
}

// TestMessagesWithoutParts reads messages of a peer that leaves out parts of the examples.
func TestMessagesWithoutParts(t *testing.T) {
	renewal, err := renewalFromProto(&pb.RenewRequest{})
	if err != nil || renewal.Spent != (Spent{}) || renewal.State.GetEndpointProblem().GetCode() != "" ||
		renewal.State.GetThrottled() != 0 || len(renewal.State.GetUnavailable()) != 0 {
		t.Errorf("renewalFromProto = %+v, %v; want an empty renewal", renewal, err)
	}
	if hello, err := helloRequestFromProto(&pb.HelloRequest{}); err != nil || hello.Spent.Process != "" {
		t.Errorf("helloRequestFromProto = %+v, %v; want a Hello of no process", hello, err)
	}
	if err := checkStatus(nil); err != nil {
		t.Errorf("checkStatus of no reply: %v", err)
	}
}
