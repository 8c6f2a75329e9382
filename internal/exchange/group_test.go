// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestGroupsRoundTrip(t *testing.T) {
	references := exampleGroup(1, 2, 9)
	references.Members[1].Trajectories[0].Segments[0].ReferenceLogprobs = []float32{0, -1, -2, -3, -4, -5, -6, -7,
		math.SmallestNonzeroFloat32}
	taught := references
	taught.Members = slices.Clone(references.Members)
	taught.Members[1].Trajectories = []rl.Trajectory{references.Members[1].Trajectories[0]}
	taught.Members[1].Trajectories[0].Segments = slices.Clone(references.Members[1].Trajectories[0].Segments)
	taught.Members[1].Trajectories[0].Segments[0].TeacherLogprobs = []float32{0, -9, -8, -7, -6, -5, -4, -3, -2}
	evaluation := exampleGroup(1, 1, 8)
	evaluation.Key.Kind, evaluation.Key.Evaluation = rl.Evaluate, "plan"
	constant := exampleGroup(1, 3, 16).Tombstone(rl.Constant, "all rewards are equal")
	groups := map[string]rl.Group{
		"of one member":               exampleGroup(0, 1, 2),
		"of tokens that fill no byte": exampleGroup(1<<26, 3, 13),
		"of many tokens":              exampleGroup(5, 8, 4096),
		"with reference log-probs":    references,
		"with a teacher as well":      taught,
		"of an evaluation":            evaluation,
		"that is constant":            constant,
		"that is a bare tombstone":    {Key: exampleKey(3), Outcome: rl.Deadline, Reason: "900 s are over"},
		"with faulted members": {Key: exampleKey(3), Outcome: rl.BelowFloor, Members: []rl.Member{
			{Index: 1, Outcome: rl.EnvironmentFault, Retries: 3}, {Index: 5, Outcome: rl.JudgeFault}}},
	}
	for name, want := range groups {
		t.Run(name, func(t *testing.T) { checkRoundTrip(t, want) })
	}
	roles := rolesGroup(4)
	roles.Judge = rl.JudgeUsage{Calls: 7, Errors: 2, Unreadable: 1, PromptTokens: 900, SampledTokens: 80}
	roles.Members[0].Trajectories[0].Judgements = []rl.Judgement{{Criterion: "The answer is short.", Rating: 0.5,
		Rationale: "It has two lines."}}
	checkRoundTrip(t, roles)
	checkRoundTrip(t, roles.Tombstone(rl.Constant, "equal"))
}

func checkRoundTrip(t *testing.T, want rl.Group) {
	t.Helper()
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
		t.Errorf("the digest is %v, and %v in the message, want %v", got.Digest(), encoded.Digest, want.Digest())
	}
	if again, err := EncodeGroup(got); err != nil || !bytes.Equal(again.Message, encoded.Message) {
		t.Errorf("encoded again it is another message: %v", err)
	}
}

// TestGoldenGroups shows that version 1 stays as it is.
func TestGoldenGroups(t *testing.T) {
	for name, group := range map[string]rl.Group{
		"testdata/group.v1.pb": exampleGroup(5, 3, 11), "testdata/group-roles.v1.pb": rolesGroup(5),
	} {
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := EncodeGroup(group)
		if err != nil || !bytes.Equal(encoded.Message, golden) {
			t.Errorf("%s: the group is encoded differently (%v)", name, err)
		}
		got, err := DecodeGroup(golden)
		if diff := cmp.Diff(group, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestEncodeGroupNamesTheFieldOfAGroupThatIsNotValid(t *testing.T) {
	cases := map[string]func(g *rl.Group){
		"members[1].reward": func(g *rl.Group) { g.Members[1].Reward = math.NaN() },
		"members[1].trajectories[0].segments[0].tokens": func(
			g *rl.Group) {
			g.Members[1].Trajectories[0].Segments[0].Tokens[3] = -1
		},
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
		"no key":                   {func(g *pb.Group) { g.Key = nil }, "key.lineage"},
		"an invalid kind":          {func(g *pb.Group) { g.Key.Kind = 3 }, "key.kind"},
		"an invalid lineage":       {func(g *pb.Group) { g.Key.Lineage = "abc" }, "key.lineage"},
		"an invalid outcome":       {func(g *pb.Group) { g.Outcome = 256 }, "outcome"},
		"an outcome below all":     {func(g *pb.Group) { g.Outcome = -1 }, "outcome"},
		"a member's outcome":       {func(g *pb.Group) { g.Members[1].Outcome = 7 }, "members[1].outcome"},
		"a member that is nothing": {func(g *pb.Group) { g.Members[1] = nil }, "members[1].index"},
		"tokens cut in the middle": {func(g *pb.Group) { g.Members[0].Trajectories[0].Segments[0].Tokens = make([]byte, 7) },
			"members[0].trajectories[0].segments[0].tokens"},
		"log-probs cut in the middle": {
			func(g *pb.Group) { g.Members[0].Trajectories[0].Segments[0].Logprobs = make([]byte, 7) },
			"members[0].trajectories[0].segments[0].logprobs"},
		"references cut in the middle": {
			func(g *pb.Group) {
				g.Members[0].Trajectories[0].Segments[0].ReferenceLogprobs = make([]byte, 7)
			}, "members[0].trajectories[0].segments[0].reference_logprobs"},
		"too few bits of actions": {func(g *pb.Group) { g.Members[0].Trajectories[0].Segments[0].Actions = []byte{2} },
			"members[0].trajectories[0].segments[0].actions"},
		"bits beyond the tokens": {func(g *pb.Group) { g.Members[0].Trajectories[0].Segments[0].Actions[1] |= 0x80 },
			"members[0].trajectories[0].segments[0].actions"},
		"too few log-probs": {func(g *pb.Group) { g.Members[0].Trajectories[0].Segments[0].Logprobs = make([]byte, 8) },
			"members[0].trajectories[0].segments[0].logprobs"},
		"a reward that is NaN": {func(g *pb.Group) { g.Members[0].Reward = math.NaN() }, "members[0].reward"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checkField(t, exampleGroup(1, 2, 11), tc.change, tc.field)
		})
	}
}

func checkField(t *testing.T, group rl.Group, change func(g *pb.Group), field string) {
	t.Helper()
	message := groupToProto(group)
	change(message)
	encoded, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeGroup(encoded)
	var wrong *rl.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("DecodeGroup = %+v, %v, want an error about %s", got, err, field)
	}
}

func TestDecodeGroupNamesTheFieldOfATrajectory(t *testing.T) {
	first := func(g *pb.Group) *pb.Trajectory { return g.Members[0].Trajectories[0] }
	const path = "members[0].trajectories[0]"
	cases := map[string]struct {
		change func(g *pb.Group)
		field  string
	}{
		"none": {func(g *pb.Group) { g.Members[0].Trajectories = nil }, "members[0].trajectories"},
		"one of a faulted member": {func(g *pb.Group) { g.Members[1].Trajectories = []*pb.Trajectory{{}} },
			"members[1].trajectories"},
		"a reward that is invalid": {func(g *pb.Group) { first(g).Reward = math.Inf(1) }, path + ".reward"},
		"a role that is invalid":   {func(g *pb.Group) { first(g).Role = "a/b" }, path + ".role"},
		"steps without rewards":    {func(g *pb.Group) { first(g).StepRewards = nil }, path + ".segments[0].steps"},
		"a step beyond the tokens": {func(g *pb.Group) { first(g).Segments[0].Steps[1].End = 10 },
			path + ".segments[0].steps"},
		"tokens cut in the middle": {func(g *pb.Group) { first(g).Segments[0].Tokens = make([]byte, 7) },
			path + ".segments[0].tokens"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkField(t, rolesGroup(1), tc.change, tc.field) })
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
		t.Errorf("%d outcomes on the wire, want %d, and the next one is not valid", len(pb.Outcome_name), len(want))
	}
	if pb.Kind(rl.Train) != pb.Kind_TRAIN || pb.Kind(rl.Evaluate) != pb.Kind_EVALUATE {
		t.Errorf("kinds on the wire are %v and %v, want %v and %v", pb.Kind(rl.Train), pb.Kind(rl.Evaluate),
			pb.Kind_TRAIN, pb.Kind_EVALUATE)
	}
}

func FuzzDecodeGroup(f *testing.F) {
	for _, group := range []rl.Group{
		exampleGroup(3, 2, 9), exampleGroup(3, 2, 9).Tombstone(rl.Constant, "equal"),
		{Key: exampleKey(1), Outcome: rl.Deadline},
	} {
		f.Add(encode(group).Message)
	}
	f.Add(encode(rolesGroup(3)).Message)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		fuzzDecode(t, encoded)
	})
}

func fuzzDecode(t *testing.T, encoded []byte) {
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
		t.Fatalf("the decoded group cannot be encoded: %v", err)
	}
	back, err := DecodeGroup(again.Message)
	if err != nil || back.Digest() != group.Digest() {
		t.Fatalf("the second round trip changed the group: %v", err)
	}
	// Training uses the values that the digest covers.
	if _, err := rl.Datums([]rl.Group{group}, rl.Advantages([]rl.Group{group},
		algorithm.Algorithm{Advantage: algorithm.Advantage{
			Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd}})); err != nil {
		t.Fatalf("a valid group makes no training data: %v", err)
	}
	for _, grouping := range []algorithm.Grouping{algorithm.GroupingStep, algorithm.GroupingEpisode} {
		alg := algorithm.Algorithm{Grouping: grouping, ConstantGroups: algorithm.DropConstantGroups}
		// A group without the rewards of steps is an error if steps are compared.
		_, err := rl.Datums([]rl.Group{group}, rl.Advantages([]rl.Group{group}, alg))
		if err != nil && grouping != algorithm.GroupingStep {
			t.Fatalf("a valid group makes no training data by %s: %v", grouping, err)
		}
	}
}

// counter counts the bytes that are read.
type counter struct {
	from io.Reader
	n    int
}

func (c *counter) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	c.n += n
	return n, err
}

// TestGroupsAreDecodedMemberByMember damages the second of many members, and checks that the rest of the group is not
// read.
func TestGroupsAreDecodedMemberByMember(t *testing.T) {
	message := groupToProto(exampleGroup(1, 64, 4096))
	message.Members[1].Trajectories[0].Segments[0].Tokens = []byte{1}
	encoded, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	read := &counter{from: bytes.NewReader(encoded)}
	_, err = readGroup(read)
	var wrong *rl.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "members[1].trajectories[0].segments[0].tokens" {
		t.Errorf("readGroup: %v, want an error about the tokens of member 1", err)
	}
	if member := len(encoded) / 64; read.n > 3*member {
		t.Errorf("%d bytes are read until the error, want at most %d", read.n, 3*member)
	}
}

// TestCutGroupsAreNotTheGroup cuts a group at each byte.
func TestCutGroupsAreNotTheGroup(t *testing.T) {
	want := exampleGroup(1, 2, 4)
	encoded := encode(want).Message
	for n := range encoded {
		if got, err := DecodeGroup(encoded[:n]); err == nil && cmp.Equal(want, got) {
			t.Errorf("the first %d of %d bytes are the whole group", n, len(encoded))
		}
	}
}

// TestHugeGroupsMayBeAnnounced announces more than 256 MiB, a size that groups of long episodes have.
func TestHugeGroupsMayBeAnnounced(t *testing.T) {
	_, err := bodyOf([]*pb.SubmitFrame{{Frame: &pb.SubmitFrame_Header{Header: &pb.SubmitHeader{Bytes: 2000 << 20}}}})
	if err == nil || !strings.Contains(err.Error(), "2097152000 fewer than announced") {
		t.Errorf("the body of 2,000 MiB without a piece: %v, want that they are missing", err)
	}
}
