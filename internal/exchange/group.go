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

// EncodeGroup encodes and digests a group in the run's format version; the same group gives the same message. The error
// is a *rl.FieldError when the group is not valid, or when the version cannot express it.
func EncodeGroup(group rl.Group, version int) (EncodedGroup, error) {
	if err := group.Validate(); err != nil {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", err)
	}
	message, err := groupToProto(group, version)
	if err != nil {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", err)
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", err)
	}
	if len(encoded) > MaxGroupBytes {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", &rl.FieldError{
			Field: "bytes", Problem: fmt.Sprintf("are %d, more than %d", len(encoded), MaxGroupBytes)})
	}
	return EncodedGroup{Key: group.Key, Outcome: group.Outcome, Digest: group.Digest(), Message: encoded}, nil
}

// DecodeGroup reads the message of an EncodedGroup of the run's format version. The group is valid; the error is a
// *rl.FieldError when it would not be.
func DecodeGroup(encoded []byte, version int) (rl.Group, error) {
	var message pb.Group
	if err := proto.Unmarshal(encoded, &message); err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", &rl.FieldError{Field: "group", Problem: "is invalid: " + err.Error()})
	}
	group, err := groupFromProto(&message, version)
	if err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", err)
	}
	if err := group.Validate(); err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", err)
	}
	return group, nil
}

func groupToProto(g rl.Group, version int) (*pb.Group, error) {
	message := &pb.Group{
		Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome), Environment: g.Environment, Reason: g.Reason,
		Usage: &pb.Usage{PromptTokens: g.PromptTokens, SampledTokens: g.SampledTokens, Judge: judgeUsageToProto(g.Judge)},
	}
	for i, m := range g.Members {
		member := memberToProto(m)
		if version == 1 {
			segments, err := simpleSegments(fmt.Sprintf("members[%d]", i), m)
			if err != nil {
				return nil, err
			}
			member.Segments = segments
		} else {
			member.Trajectories = all(m.Trajectories, trajectoryToProto)
		}
		message.Members = append(message.Members, member)
	}
	return message, nil
}

func memberToProto(m rl.Member) *pb.Member {
	return &pb.Member{
		Index: int32(m.Index), Outcome: pb.Outcome(m.Outcome), Reward: m.Reward, Parts: m.Parts,
		StopReason: m.StopReason, Metrics: m.Metrics, Turns: int32(m.Turns),
		PromptTokens: m.PromptTokens, SampledTokens: m.SampledTokens, Retries: int32(m.Retries),
		Transcript: m.Transcript,
	}
}

func segmentToProto(s rl.Segment) *pb.Segment {
	return &pb.Segment{
		Turn: int32(s.Turn), Tokens: packInts(s.Tokens), Actions: packBits(s.Actions),
		Logprobs: packFloats(s.Logprobs), ReferenceLogprobs: packFloats(s.ReferenceLogprobs),
		Steps: all(s.Steps, func(step rl.Step) *pb.Step { return &pb.Step{Index: int32(step.Index), End: int32(step.End)} }),
	}
}

func groupFromProto(message *pb.Group, version int) (rl.Group, error) {
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
		Judge: judgeUsageFromProto(message.GetUsage().GetJudge()),
	}
	for i, m := range message.GetMembers() {
		member, err := memberFromProto(fmt.Sprintf("members[%d]", i), m, version)
		if err != nil {
			return rl.Group{}, err
		}
		group.Members = append(group.Members, member)
	}
	return group, nil
}

func memberFromProto(field string, m *pb.Member, version int) (rl.Member, error) {
	outcome, err := outcomeFromProto(field+".outcome", m.GetOutcome())
	if err != nil {
		return rl.Member{}, err
	}
	member := rl.Member{
		Index: int(m.GetIndex()), Outcome: outcome, Reward: m.GetReward(), Parts: m.GetParts(),
		StopReason: m.GetStopReason(), Metrics: m.GetMetrics(), Turns: int(m.GetTurns()),
		PromptTokens: m.GetPromptTokens(), SampledTokens: m.GetSampledTokens(), Retries: int(m.GetRetries()),
	}
	// An invalid transcript is left out, and the group is accepted: nothing depends on a transcript.
	if t := m.GetTranscript(); len(t) > 0 && len(t) <= rl.MaxTranscript {
		member.Transcript = t
	}
	if version == 1 {
		member.Trajectories, err = simpleTrajectories(field, m)
		return member, err
	}
	if len(m.GetSegments()) > 0 {
		return rl.Member{}, &rl.FieldError{Field: field + ".segments", Problem: "are those of format version 1"}
	}
	member.Trajectories, err = each(field+".trajectories", m.GetTrajectories(), trajectoryFromProto)
	return member, err
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
		Steps: all(s.GetSteps(), func(step *pb.Step) rl.Step { return rl.Step{Index: int(step.GetIndex()), End: int(step.GetEnd())} }),
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

// unpackFloats returns nil if there are no values.
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
