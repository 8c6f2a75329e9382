// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// MaxGroupBytes bounds a group as a message: the protobuf library encodes no longer message. The API refuses settings
// whose groups are longer.
const MaxGroupBytes = math.MaxInt32

// EncodedGroup is a valid group as Submit sends it. A group is encoded and digested once, at its creation.
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

// DecodeGroup reads the message of an EncodedGroup. It returns only valid groups; the error is a *rl.FieldError if
// the group is not valid.
func DecodeGroup(encoded []byte) (rl.Group, error) { return readGroup(bytes.NewReader(encoded)) }

// membersField is the number of the field that has the members of a group.
const membersField = protowire.Number(3)

// readGroup reads a group from its encoding. Each member is decoded as soon as it has arrived, so that the encoding
// of only one member is in memory beside the group.
func readGroup(from io.Reader) (rl.Group, error) {
	group, err := decodeFields(bufio.NewReader(from))
	if err == nil {
		err = group.Validate()
	}
	if err != nil {
		return rl.Group{}, fmt.Errorf("decoding group: %w", err)
	}
	compact(&group)
	return group, nil
}

// decodeFields decodes the fields of a group in the order in which they come. The error is a *rl.FieldError if they
// are not the fields of a group, and otherwise the reader's.
func decodeFields(from *bufio.Reader) (rl.Group, error) {
	var d decoder
	var members []rl.Member
	// rest has the other fields.
	var rest []byte
	for {
		number, value, err := nextField(from)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return rl.Group{}, err
		}
		if number != membersField {
			rest = append(rest, value...)
			continue
		}
		var member pb.Member
		content, n := protowire.ConsumeBytes(value[protowire.SizeTag(number):])
		if n < 0 {
			return rl.Group{}, invalidGroup(protowire.ParseError(n))
		}
		if err := proto.Unmarshal(content, &member); err != nil {
			return rl.Group{}, invalidGroup(err)
		}
		members = append(members, d.member(fmt.Sprintf("members[%d]", len(members)), &member))
		if d.err != nil {
			return rl.Group{}, d.err
		}
	}
	var message pb.Group
	if err := proto.Unmarshal(rest, &message); err != nil {
		return rl.Group{}, invalidGroup(err)
	}
	group := d.group(&message)
	group.Members = members
	return group, d.err
}

func invalidGroup(err error) error {
	return &rl.FieldError{Field: "group", Problem: "is invalid: " + err.Error()}
}

// nextField reads a field of a message with its tag. It returns io.EOF at the end of the message.
func nextField(from *bufio.Reader) (protowire.Number, []byte, error) {
	var field []byte
	tag, err := readVarint(from, &field)
	if err != nil && len(field) == 0 {
		return 0, nil, err
	}
	number, kind := protowire.DecodeTag(tag)
	length := uint64(0)
	switch {
	case err != nil:
	case number < protowire.MinValidNumber:
		return 0, nil, invalidGroup(errors.New("a field has no number"))
	case kind == protowire.VarintType:
		_, err = readVarint(from, &field)
	case kind == protowire.Fixed32Type:
		length = 4
	case kind == protowire.Fixed64Type:
		length = 8
	case kind == protowire.BytesType:
		length, err = readVarint(from, &field)
	default:
		return 0, nil, invalidGroup(fmt.Errorf("a field has the wire type %d", kind))
	}
	if err == nil && length > MaxGroupBytes {
		return 0, nil, invalidGroup(fmt.Errorf("a field has %d bytes", length))
	}
	if err == nil && length > 0 {
		field, err = readMore(from, field, int64(length))
	}
	if errors.Is(err, io.EOF) {
		err = invalidGroup(io.ErrUnexpectedEOF)
	}
	return number, field, err
}

// readVarint reads a number, and appends its bytes to a field.
func readVarint(from *bufio.Reader, field *[]byte) (uint64, error) {
	begin := len(*field)
	for {
		b, err := from.ReadByte()
		if err != nil {
			return 0, err
		}
		*field = append(*field, b)
		if b >= 0x80 && len(*field)-begin < binary.MaxVarintLen64 {
			continue
		}
		value, n := protowire.ConsumeVarint((*field)[begin:])
		if n < 0 {
			return 0, invalidGroup(protowire.ParseError(n))
		}
		return value, nil
	}
}

// readMore appends bytes to a field. Memory for the announced length is allocated only up to MaxFrameBytes: beyond
// that, the field grows as its bytes arrive.
func readMore(from *bufio.Reader, field []byte, length int64) ([]byte, error) {
	content := bytes.NewBuffer(slices.Grow(field, int(min(length, MaxFrameBytes))))
	n, err := io.CopyN(content, from, length)
	if err == nil && n < length {
		err = io.EOF
	}
	return content.Bytes(), err
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
		TeacherLogprobs: pack(s.TeacherLogprobs, math.Float32bits),
		Steps: all(s.Steps, func(step rl.Step) *pb.Step {
			return &pb.Step{Index: int32(step.Index), End: int32(step.End)}
		}),
	}
}

// group converts a group without its members.
func (d *decoder) group(message *pb.Group) rl.Group {
	return rl.Group{
		Key: d.key("key", message.GetKey()), Outcome: d.outcome("outcome", message.GetOutcome()),
		Environment: message.GetEnvironment(), Reason: message.GetReason(),
		PromptTokens: message.GetUsage().GetPromptTokens(), SampledTokens: message.GetUsage().GetSampledTokens(),
		Judge: judgeUsageFromProto(message.GetUsage().GetJudge()),
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
		TeacherLogprobs:   unpack(d, field+".teacher_logprobs", "float32", s.GetTeacherLogprobs(), math.Float32frombits),
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
