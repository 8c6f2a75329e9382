// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokencount

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// message has the fields of a protobuf message that count, by their numbers.
type message map[protowire.Number]field

// field is a field that counts: a nested message, bytes whose number is passed to size, or a number that is passed to
// number.
type field struct {
	message message
	size    func(c *counts, bytes int64)
	number  func(c *counts, value uint64)
}

// counts are the tokens of a body.
type counts struct {
	text, image, sampled, cached int64
	forward                      bool
}

// bytesPerToken is the size of a token in the binary form.
const bytesPerToken = 4

func addText(c *counts, bytes int64) { c.text += bytes / bytesPerToken }

// request is ForwardBackwardRequest: its data have chunks of text or of images. The number of forward_only is 6.
var request = message{
	3: {message: message{1: {message: message{
		1: {message: message{1: {size: addText}}},
		2: {message: message{3: {number: func(c *counts, value uint64) { c.image += positive(int32(value)) }}}},
	}}}},
	6: {number: func(c *counts, value uint64) { c.forward = value != 0 }},
}

// response is SampleResponse: its sequences have tokens.
var response = message{
	1: {message: message{2: {size: func(c *counts, bytes int64) { c.sampled += bytes / bytesPerToken }}}},
	4: {number: func(c *counts, value uint64) { c.cached = positive(int32(value)) }},
}

func positive(n int32) int64 { return int64(max(0, n)) }

// protoScan reads a protobuf message that comes in pieces. It holds a few bytes of it at most.
type protoScan struct {
	counts  counts
	read    int64
	within  []frame
	skip    int64
	varint  [10]byte
	have    int
	tag     uint64
	hasTag  bool
	invalid bool
}

// frame is a message that is being read: its fields, and where it ends.
type frame struct {
	of  message
	end int64
}

// endless is the end of the outermost message.
const endless = 1<<63 - 1

func newProtoScan(of message) *protoScan { return &protoScan{within: []frame{{of, endless}}} }

// Write reads a piece of the message.
func (s *protoScan) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 && !s.invalid {
		if s.skip > 0 {
			n := min(s.skip, int64(len(p)))
			p, s.skip, s.read = p[n:], s.skip-n, s.read+n
			continue
		}
		s.leave()
		s.varint[s.have] = p[0]
		s.have++
		s.read++
		last := p[0] < 0x80
		p = p[1:]
		if !last {
			s.invalid = s.have == len(s.varint)
			continue
		}
		value, n := protowire.ConsumeVarint(s.varint[:s.have])
		s.have = 0
		if n < 0 {
			s.invalid = true
			continue
		}
		s.take(value)
	}
	return size, nil
}

// leave ends the messages whose end is reached.
func (s *protoScan) leave() {
	for s.have == 0 && !s.hasTag && s.read >= s.within[len(s.within)-1].end {
		s.within = s.within[:len(s.within)-1]
	}
}

// take takes a tag, or the number or size after it.
func (s *protoScan) take(value uint64) {
	if !s.hasTag {
		s.tag, s.hasTag = value, true
		switch _, wire := protowire.DecodeTag(value); wire {
		case protowire.VarintType, protowire.BytesType:
		case protowire.Fixed32Type:
			s.skip, s.hasTag = 4, false
		case protowire.Fixed64Type:
			s.skip, s.hasTag = 8, false
		default:
			s.invalid = true
		}
		return
	}
	s.hasTag = false
	number, wire := protowire.DecodeTag(s.tag)
	found := s.within[len(s.within)-1].of[number]
	if wire == protowire.VarintType {
		if found.number != nil {
			found.number(&s.counts, value)
		}
		return
	}
	if value > 1<<40 {
		s.invalid = true
		return
	}
	if found.message != nil {
		s.within = append(s.within, frame{found.message, s.read + int64(value)})
		return
	}
	if found.size != nil {
		found.size(&s.counts, int64(value))
	}
	s.skip = int64(value)
}
