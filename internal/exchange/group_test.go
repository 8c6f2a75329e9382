// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestGroupsRoundTrip(t *testing.T) {
	references := exampleGroup(1, 2, 9)
	references.Members[1].Trajectories[0].Segments[0].ReferenceLogprobs = []float32{0, -1, -2, -3, -4, -5, -6, -7, math.SmallestNonzeroFloat32}
	evaluation := exampleGroup(1, 1, 8)
	evaluation.Key.Kind, evaluation.Key.Evaluation = rl.Evaluate, "plan"
	constant := exampleGroup(1, 3, 16).Tombstone(rl.Constant, "all rewards are equal")
	groups := map[string]rl.Group{
		"of one member":               exampleGroup(0, 1, 2),
		"of tokens that fill no byte": exampleGroup(1<<26, 3, 13),
		"of many tokens":              exampleGroup(5, 8, 4096),
		"with reference log-probs":    references,
		"of an evaluation":            evaluation,
		"that is constant":            constant,
		"that is a bare tombstone":    {Key: exampleKey(3), Outcome: rl.Deadline, Reason: "900 s are over"},
		"with faulted members": {Key: exampleKey(3), Outcome: rl.BelowFloor, Members: []rl.Member{
			{Index: 1, Outcome: rl.EnvironmentFault, Retries: 3}, {Index: 5, Outcome: rl.JudgeFault}}},
	}
	for name, want := range groups {
		t.Run(name, func(t *testing.T) {
			encoded, err := EncodeGroup(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeGroup(encoded.Message)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("round trip (-want +got):\n%s", diff)
			}
			if got.Digest() != want.Digest() || encoded.Digest != want.Digest() {
				t.Error("the digest changed on the way")
			}
			if again, err := EncodeGroup(got); err != nil || !bytes.Equal(again.Message, encoded.Message) {
				t.Errorf("encoded again it is another message: %v", err)
			}
		})
	}
}

func TestEncodeGroupNamesTheFieldOfAGroupThatIsNotValid(t *testing.T) {
	cases := map[string]func(g *rl.Group){
		"members[1].reward":                             func(g *rl.Group) { g.Members[1].Reward = math.NaN() },
		"members[1].trajectories[0].segments[0].tokens": func(g *rl.Group) { g.Members[1].Trajectories[0].Segments[0].Tokens[3] = -1 },
	}
	for field, change := range cases {
		group := exampleGroup(1, 2, 8)
		change(&group)
		_, err := EncodeGroup(group)
		var wrong *rl.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("EncodeGroup: %v, want an error about %s", err, field)
		}
	}
}

func TestDecodeGroupNamesTheFieldThatIsWrong(t *testing.T) {
	cases := map[string]struct {
		change func(g *pb.Group)
		field  string
	}{
		"no key":                      {func(g *pb.Group) { g.Key = nil }, "key.lineage"},
		"an invalid kind":             {func(g *pb.Group) { g.Key.Kind = 3 }, "key.kind"},
		"an invalid lineage":          {func(g *pb.Group) { g.Key.Lineage = "abc" }, "key.lineage"},
		"an invalid outcome":          {func(g *pb.Group) { g.Outcome = 256 }, "outcome"},
		"an outcome below all":        {func(g *pb.Group) { g.Outcome = -1 }, "outcome"},
		"a member's outcome":          {func(g *pb.Group) { g.Members[1].Outcome = 7 }, "members[1].outcome"},
		"a member that is nothing":    {func(g *pb.Group) { g.Members[1] = nil }, "members[1].index"},
		"tokens cut in the middle":    {func(g *pb.Group) { g.Members[0].Segments[0].Tokens = make([]byte, 7) }, "members[0].segments[0].tokens"},
		"log-probs cut in the middle": {func(g *pb.Group) { g.Members[0].Segments[0].Logprobs = make([]byte, 7) }, "members[0].segments[0].logprobs"},
		"references cut in the middle": {
			func(g *pb.Group) { g.Members[0].Segments[0].ReferenceLogprobs = make([]byte, 7) }, "members[0].segments[0].reference_logprobs"},
		"too few bits of actions":    {func(g *pb.Group) { g.Members[0].Segments[0].Actions = []byte{2} }, "members[0].segments[0].actions"},
		"bits beyond the tokens":     {func(g *pb.Group) { g.Members[0].Segments[0].Actions[1] |= 0x80 }, "members[0].segments[0].actions"},
		"too few log-probs":          {func(g *pb.Group) { g.Members[0].Segments[0].Logprobs = make([]byte, 8) }, "members[0].trajectories[0].segments[0].logprobs"},
		"a reward that is no number": {func(g *pb.Group) { g.Members[0].Reward = math.NaN() }, "members[0].reward"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			message := groupToProto(exampleGroup(1, 2, 11))
			tc.change(message)
			encoded, err := proto.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			group, err := DecodeGroup(encoded)
			var wrong *rl.FieldError
			if !errors.As(err, &wrong) || wrong.Field != tc.field {
				t.Errorf("DecodeGroup = %+v, %v, want an error about %s", group, err, tc.field)
			}
		})
	}
}

func TestDecodeGroupRefusesWhatIsNoMessage(t *testing.T) {
	_, err := DecodeGroup([]byte{0xff, 0xff, 0xff})
	var wrong *rl.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "group" {
		t.Errorf("DecodeGroup: %v", err)
	}
}

func TestOutcomesAndKindsHaveTheSameNumbersOnTheWire(t *testing.T) {
	want := map[rl.Outcome]pb.Outcome{
		rl.Usable: pb.Outcome_USABLE, rl.BelowFloor: pb.Outcome_BELOW_FLOOR, rl.Constant: pb.Outcome_CONSTANT,
		rl.EnvironmentFault: pb.Outcome_ENVIRONMENT_FAULT, rl.JudgeFault: pb.Outcome_JUDGE_FAULT,
		rl.Deadline: pb.Outcome_DEADLINE, rl.InvalidTokens: pb.Outcome_INVALID_TOKENS,
	}
	for outcome, number := range want {
		if pb.Outcome(outcome) != number {
			t.Errorf("%s is %d on the wire, want %d", outcome, pb.Outcome(outcome), number)
		}
	}
	if len(want) != len(pb.Outcome_name) || rl.Outcome(len(want)).IsValid() {
		t.Error("there are outcomes on one side only")
	}
	if pb.Kind(rl.Train) != pb.Kind_TRAIN || pb.Kind(rl.Evaluate) != pb.Kind_EVALUATE {
		t.Error("kinds differ on the wire")
	}
	verdicts := map[SubmitStatus]string{Accepted: "ACCEPTED", Duplicate: "DUPLICATE", Closed: "CLOSED", Stale: "STALE", Invalid: "INVALID"}
	for verdict, name := range verdicts {
		if pb.SubmitReply_Verdict(verdict).String() != name {
			t.Errorf("%s is %s on the wire", verdict, pb.SubmitReply_Verdict(verdict))
		}
	}
}

func FuzzDecodeGroup(f *testing.F) {
	for _, group := range []rl.Group{
		exampleGroup(3, 2, 9), exampleGroup(3, 2, 9).Tombstone(rl.Constant, "equal"), {Key: exampleKey(1), Outcome: rl.Deadline},
	} {
		f.Add(encode(group).Message)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		group, err := DecodeGroup(encoded)
		var wrong *rl.FieldError
		if err != nil && !errors.As(err, &wrong) {
			t.Fatalf("the error names no field: %v", err)
		}
		if err != nil {
			return
		}
		again, err := EncodeGroup(group)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		back, err := DecodeGroup(again.Message)
		if err != nil || back.Digest() != group.Digest() {
			t.Fatalf("the second round trip changed the group: %v", err)
		}
		// What is trained on is what the digest covers.
		if _, err := rl.Datums([]rl.Group{group}, rl.Advantages([]rl.Group{group}, contract.Algorithm{Advantage: contract.Advantage{
			Baseline: contract.BaselineGroupMean, Scale: contract.ScaleGroupStd}})); err != nil {
			t.Fatalf("a valid group makes no training data: %v", err)
		}
	})
}
