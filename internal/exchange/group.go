// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// MaxGroupBytes bounds a group as a message.
const MaxGroupBytes = 256 << 20

// EncodedGroup is a valid group as Submit sends it. A group is encoded and digested once, where it is made.
type EncodedGroup struct {
	Key     rl.Key
	Outcome rl.Outcome
	// Digest is the group's, see rl.Group.Digest.
	Digest rl.Digest
	// Message is the marshalled group.
	Message []byte
}

// EncodeGroup encodes and digests a group; the same group gives the same message. The error is a
// *rl.FieldError when the group is not valid.
func EncodeGroup(group rl.Group) (EncodedGroup, error) {
	if err := group.Validate(); err != nil {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", err)
	}
	for i, m := range group.Members {
		if !m.IsSimple() || m.Outcome == rl.Usable && m.Trajectories[0].Reward != m.Reward {
			return EncodedGroup{}, fmt.Errorf("encoding group: %w", &rl.FieldError{
				Field: fmt.Sprintf("members[%d].trajectories", i), Problem: "need format version 2, and the run has version 1"})
		}
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(groupToProto(group))
	if err != nil {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", err)
	}
	if len(encoded) > MaxGroupBytes {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", &rl.FieldError{
			Field: "bytes", Problem: fmt.Sprintf("are %d, more than %d", len(encoded), MaxGroupBytes)})
	}
	return EncodedGroup{Key: group.Key, Outcome: group.Outcome, Digest: group.Digest(), Message: encoded}, nil
}

// DecodeGroup reads the message of an EncodedGroup. The group is valid; the error is a *rl.FieldError when
// it would not be.
func DecodeGroup(encoded []byte) (rl.Group, error) {
	var message pb.Group
	if err := proto.Unmarshal(encoded, &message); err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", &rl.FieldError{Field: "group", Problem: "is invalid: " + err.Error()})
	}
	group, err := groupFromProto(&message)
	if err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", err)
	}
	if err := group.Validate(); err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", err)
	}
	return group, nil
}

func groupToProto(g rl.Group) *pb.Group {
	message := &pb.Group{
		Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome), Environment: g.Environment, Reason: g.Reason,
		Usage: &pb.Usage{PromptTokens: g.PromptTokens, SampledTokens: g.SampledTokens},
	}
	for _, m := range g.Members {
		message.Members = append(message.Members, memberToProto(m))
	}
	return message
}

func memberToProto(m rl.Member) *pb.Member {
	message := &pb.Member{
		Index: int32(m.Index), Outcome: pb.Outcome(m.Outcome), Reward: m.Reward, Parts: m.Parts,
		StopReason: m.StopReason, Metrics: m.Metrics, Turns: int32(m.Turns),
		PromptTokens: m.PromptTokens, SampledTokens: m.SampledTokens, Retries: int32(m.Retries),
	}
	for _, t := range m.Trajectories {
		for _, s := range t.Segments {
			segment := segmentToProto(s)
			segment.Role = t.Role
			message.Segments = append(message.Segments, segment)
		}
	}
	return message
}

func segmentToProto(s rl.Segment) *pb.Segment {
	return &pb.Segment{
		Turn: int32(s.Turn), Tokens: packInts(s.Tokens), Actions: packBits(s.Actions),
		Logprobs: packFloats(s.Logprobs), ReferenceLogprobs: packFloats(s.ReferenceLogprobs),
	}
}

func groupFromProto(message *pb.Group) (rl.Group, error) {
	key, err := keyFromProto("key", message.GetKey())
	if err != nil {
		return rl.Group{}, err
	}
	outcome, err := outcomeFromProto("outcome", message.GetOutcome())
	if err != nil {
		return rl.Group{}, err
	}
	group := rl.Group{
		Key: key, Outcome: outcome, Environment: message.GetEnvironment(), Reason: message.GetReason(),
		PromptTokens: message.GetUsage().GetPromptTokens(), SampledTokens: message.GetUsage().GetSampledTokens(),
	}
	for i, m := range message.GetMembers() {
		member, err := memberFromProto(fmt.Sprintf("members[%d]", i), m)
		if err != nil {
			return rl.Group{}, err
		}
		group.Members = append(group.Members, member)
	}
	return group, nil
}

func memberFromProto(field string, m *pb.Member) (rl.Member, error) {
	outcome, err := outcomeFromProto(field+".outcome", m.GetOutcome())
	if err != nil {
		return rl.Member{}, err
	}
	member := rl.Member{
		Index: int(m.GetIndex()), Outcome: outcome, Reward: m.GetReward(), Parts: m.GetParts(),
		StopReason: m.GetStopReason(), Metrics: m.GetMetrics(), Turns: int(m.GetTurns()),
		PromptTokens: m.GetPromptTokens(), SampledTokens: m.GetSampledTokens(), Retries: int(m.GetRetries()),
	}
	if outcome != rl.Usable {
		if len(m.GetSegments()) > 0 {
			return rl.Member{}, &rl.FieldError{Field: field + ".segments", Problem: "are given, but the member is not usable"}
		}
		return member, nil
	}
	trajectory, err := simpleTrajectory(field, m)
	member.Trajectories = []rl.Trajectory{trajectory}
	return member, err
}

// simpleTrajectory gives the one trajectory of a usable member of version 1, which has its fields.
func simpleTrajectory(field string, m *pb.Member) (rl.Trajectory, error) {
	t := rl.Trajectory{Reward: m.GetReward(), StopReason: m.GetStopReason()}
	for i, s := range m.GetSegments() {
		path := fmt.Sprintf("%s.segments[%d]", field, i)
		segment, err := segmentFromProto(path, s)
		if err != nil {
			return rl.Trajectory{}, err
		}
		if i > 0 && s.GetRole() != t.Role {
			return rl.Trajectory{}, &rl.FieldError{Field: path + ".role", Problem: "is not that of the segment before"}
		}
		t.Role = s.GetRole()
		t.Segments = append(t.Segments, segment)
	}
	return t, nil
}

func segmentFromProto(field string, s *pb.Segment) (rl.Segment, error) {
	tokens, ok := unpackInts(s.GetTokens())
	if !ok {
		return rl.Segment{}, &rl.FieldError{Field: field + ".tokens", Problem: "have no whole number of int32"}
	}
	actions, ok := unpackBits(s.GetActions(), len(tokens))
	if !ok {
		return rl.Segment{}, &rl.FieldError{Field: field + ".actions", Problem: "are not one bit a token"}
	}
	logprobs, ok := unpackFloats(s.GetLogprobs())
	if !ok {
		return rl.Segment{}, &rl.FieldError{Field: field + ".logprobs", Problem: "have no whole number of float32"}
	}
	reference, ok := unpackFloats(s.GetReferenceLogprobs())
	if !ok {
		return rl.Segment{}, &rl.FieldError{Field: field + ".reference_logprobs", Problem: "have no whole number of float32"}
	}
	return rl.Segment{
		Turn: int(s.GetTurn()), Tokens: tokens, Actions: actions,
		Logprobs: logprobs, ReferenceLogprobs: reference,
	}, nil
}

func packInts(values []int32) []byte {
	packed := make([]byte, 0, 4*len(values))
	for _, v := range values {
		packed = binary.LittleEndian.AppendUint32(packed, uint32(v))
	}
	return packed
}

func unpackInts(packed []byte) ([]int32, bool) {
	if len(packed)%4 != 0 {
		return nil, false
	}
	values := make([]int32, len(packed)/4)
	for i := range values {
		values[i] = int32(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	return values, true
}

func packFloats(values []float32) []byte {
	packed := make([]byte, 0, 4*len(values))
	for _, v := range values {
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(v))
	}
	return packed
}

// unpackFloats gives nil for no value.
func unpackFloats(packed []byte) ([]float32, bool) {
	if len(packed)%4 != 0 {
		return nil, false
	}
	if len(packed) == 0 {
		return nil, true
	}
	values := make([]float32, len(packed)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	return values, true
}

// packBits puts the first value into the lowest bit.
func packBits(values []bool) []byte {
	packed := make([]byte, (len(values)+7)/8)
	for i, v := range values {
		if v {
			packed[i/8] |= 1 << (i % 8)
		}
	}
	return packed
}

// unpackBits requires as many bytes as n bits take. The bits beyond n have to be 0.
func unpackBits(packed []byte, n int) ([]bool, bool) {
	if len(packed) != (n+7)/8 {
		return nil, false
	}
	if n%8 != 0 && packed[n/8]>>(n%8) != 0 {
		return nil, false
	}
	values := make([]bool, n)
	for i := range values {
		values[i] = packed[i/8]>>(i%8)&1 == 1
	}
	return values, true
}
