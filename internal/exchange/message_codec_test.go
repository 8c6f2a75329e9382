// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"testing"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// What each side says in the examples of exchange_test.go is changed field by field; the error names it.
func TestMessagesNameTheFieldThatIsWrong(t *testing.T) {
	badKey := &pb.GroupKey{Lineage: "none"}
	goodKey := keyToProto(exampleKey(1))
	held := func(change func(h *pb.Held)) []*pb.Held {
		h := heldToProto(StoredGroup{Key: exampleKey(1)})
		change(h)
		return []*pb.Held{h}
	}
	hello := func(r *pb.HelloRequest) error { _, err := helloRequestFromProto(r); return err }
	reply := func(r *pb.HelloReply) error { _, err := helloReplyFromProto(r); return err }
	renewal := func(r *pb.RenewRequest) error { _, err := renewalFromProto(r); return err }
	directive := func(r *pb.RenewReply) error { _, err := directiveFromProto(r); return err }
	cases := map[string]error{
		"held[0].key.lineage":            hello(&pb.HelloRequest{Held: held(func(h *pb.Held) { h.Key = badKey })}),
		"held[0].outcome":                hello(&pb.HelloRequest{Held: held(func(h *pb.Held) { h.Outcome = 99 })}),
		"playing[1].lineage":             hello(&pb.HelloRequest{Playing: []*pb.GroupKey{goodKey, badKey}}),
		"wanted[0].lineage":              reply(&pb.HelloReply{Wanted: []*pb.GroupKey{badKey}}),
		"keep[0].key.lineage":            reply(&pb.HelloReply{Keep: []*pb.Lease{{Key: badKey}}}),
		"progress[0].key.lineage":        renewal(&pb.RenewRequest{Progress: []*pb.Progress{{Key: badKey}}}),
		"revoked[0].lineage":             directive(&pb.RenewReply{Revoked: []*pb.GroupKey{badKey}}),
		"covered_evaluations[0].lineage": directive(&pb.RenewReply{CoveredEvaluations: []*pb.Evaluation{{Plan: "p"}}}),
		"condemned[0].key.lineage":       directive(&pb.RenewReply{Condemned: []*pb.Condemned{{Key: badKey, Outcome: 6}}}),
		"condemned[0].outcome":           directive(&pb.RenewReply{Condemned: []*pb.Condemned{{Key: goodKey}}}),
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
	if _, err := submitReplyFromProto(&pb.SubmitReply{Verdict: 5}); err == nil {
		t.Error("an invalid status passed")
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	want := map[SubmitStatus]string{Accepted: "accepted", Duplicate: "duplicate", Closed: "closed", Stale: "stale", Invalid: "invalid"}
	for verdict, name := range want {
		if verdict.String() != name {
			t.Errorf("%d is called %s, want %s", verdict, verdict, name)
		}
	}
}
