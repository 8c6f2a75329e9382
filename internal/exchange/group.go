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

// EncodeGroup encodes and digests a group; the same group gives the same message. The error is a *rl.FieldError when
// the group is not valid.
func EncodeGroup(group rl.Group) (EncodedGroup, error) {
	if err := group.Validate(); err != nil {
		return EncodedGroup{}, fmt.Errorf("encoding group: %w", err)
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

// DecodeGroup reads the message of an EncodedGroup. The group is valid; the error is a *rl.FieldError when it would not
// be.
func DecodeGroup(encoded []byte) (rl.Group, error) {
	var message pb.Group
	if err := proto.Unmarshal(encoded, &message); err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w",
			&rl.FieldError{Field: "group", Problem: "is invalid: " + err.Error()})
	}
	var d decoder
	group := d.group(&message)
	if d.err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", d.err)
	}
	if err := group.Validate(); err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", err)
	}
	return group, nil
}

func groupToProto(g rl.Group) *pb.Group {
	return &pb.Group{
		Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome), Environment: g.Environment, Reason: g.Reason,
		Usage:   &pb.Usage{PromptTokens: g.PromptTokens, SampledTokens: g.SampledTokens, Judge: judgeUsageToProto(g.Judge)},
		Members: all(g.Members, memberToProto),
	}
}

func memberToProto(m rl.Member) *pb.Member {
	return &pb.Member{
		Index: int32(m.Index), Outcome: pb.Outcome(m.Outcome), Reward: m.Reward, Parts: m.Parts,
		StopReason: m.StopReason, Metrics: m.Metrics, Turns: int32(m.Turns),
		PromptTokens: m.PromptTokens, SampledTokens: m.SampledTokens, Retries: int32(m.Retries),
		Trajectories: all(m.Trajectories, trajectoryToProto), Transcript: m.Transcript,
	}
}

func segmentToProto(s rl.Segment) *pb.Segment {
	return &pb.Segment{
		Turn: int32(s.Turn), Tokens: pack(s.Tokens, func(token int32) uint32 { return uint32(token) }),
		Actions:  packBits(s.Actions),
		Logprobs: pack(s.Logprobs, math.Float32bits), ReferenceLogprobs: pack(s.ReferenceLogprobs, math.Float32bits),
		Steps: all(s.Steps, func(step rl.Step) *pb.Step { return &pb.Step{Index: int32(step.Index), End: int32(step.End)} }),
	}
}

func (d *decoder) group(message *pb.Group) rl.Group {
	return rl.Group{
		Key: d.key("key", message.GetKey()), Outcome: d.outcome("outcome", message.GetOutcome()),
		Environment: message.GetEnvironment(), Reason: message.GetReason(),
		PromptTokens: message.GetUsage().GetPromptTokens(), SampledTokens: message.GetUsage().GetSampledTokens(),
		Judge: judgeUsageFromProto(message.GetUsage().GetJudge()), Members: each("members", message.GetMembers(), d.member),
	}
}

func (d *decoder) member(field string, m *pb.Member) rl.Member {
	member := rl.Member{
		Index: int(m.GetIndex()), Outcome: d.outcome(field+".outcome", m.GetOutcome()), Reward: m.GetReward(),
		Parts:      m.GetParts(),
		StopReason: m.GetStopReason(), Metrics: m.GetMetrics(), Turns: int(m.GetTurns()),
		PromptTokens: m.GetPromptTokens(), SampledTokens: m.GetSampledTokens(), Retries: int(m.GetRetries()),
		Trajectories: each(field+".trajectories", m.GetTrajectories(), d.trajectory),
	}
	// An invalid transcript is left out, and the group is accepted: nothing depends on a transcript.
	if t := m.GetTranscript(); len(t) > 0 && len(t) <= rl.MaxTranscript {
		member.Transcript = t
	}
	return member
}

func (d *decoder) segment(field string, s *pb.Segment) rl.Segment {
	tokens := unpack(d, field+".tokens", "int32", s.GetTokens(), func(bits uint32) int32 { return int32(bits) })
	actions, ok := unpackBits(s.GetActions(), len(tokens))
	if !ok {
		d.fail(field+".actions", "are not one bit a token")
	}
	return rl.Segment{
		Turn: int(s.GetTurn()), Tokens: tokens, Actions: actions,
		Logprobs:          unpack(d, field+".logprobs", "float32", s.GetLogprobs(), math.Float32frombits),
		ReferenceLogprobs: unpack(d, field+".reference_logprobs", "float32", s.GetReferenceLogprobs(), math.Float32frombits),
		Steps: all(s.GetSteps(), func(step *pb.Step) rl.Step {
			return rl.Step{Index: int(step.GetIndex()), End: int(step.GetEnd())}
		}),
	}
}

// pack encodes values of 32 bits.
func pack[V any](values []V, bits func(V) uint32) []byte {
	packed := make([]byte, 0, 4*len(values))
	for _, v := range values {
		packed = binary.LittleEndian.AppendUint32(packed, bits(v))
	}
	return packed
}

// unpack decodes values of 32 bits. It returns nil if packed is empty.
func unpack[V any](d *decoder, field, kind string, packed []byte, value func(bits uint32) V) []V {
	if len(packed)%4 != 0 {
		d.fail(field, "have no whole number of %s", kind)
	}
	if len(packed) < 4 {
		return nil
	}
	values := make([]V, len(packed)/4)
	for i := range values {
		values[i] = value(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	return values
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
