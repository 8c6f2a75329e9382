// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
)

// llama3 is the format of Llama 3's instruct models, without the dates of their template:
//
//	<|begin_of_text|><|start_header_id|>user<|end_header_id|>
//
//	2+2?<|eot_id|>
//
// It does not support tools, like the reference: the model writes calls as bare JSON, which cannot be distinguished
// from an answer in JSON.
type llama3 struct{ format.Profile }

const (
	llamaBegin       = "<|begin_of_text|>"
	llamaHeaderStart = "<|start_header_id|>"
	llamaHeaderEnd   = "<|end_header_id|>"
	llamaEnd         = "<|eot_id|>"
)

var newLlama3 = withTokens([]string{llamaBegin, llamaHeaderStart, llamaHeaderEnd, llamaEnd},
	func(v *format.Vocabulary) format.Family {
		stop := renderer.Stop{Tokens: []int32{v.ID(llamaEnd)}}
		return &llama3{format.Profile{Vocabulary: v, Begin: []int32{v.ID(llamaBegin)}, Stop: stop, End: llamaEnd,
			History: format.Kept}}
	})

// Write implements format.Family.
func (l *llama3) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	text, err := format.PlainText(m)
	if err != nil {
		return err
	}
	l.head(out, m.Role).Body()
	out.Text(text).Token(llamaEnd)
	return nil
}

func (l *llama3) head(out *format.Writer, role string) *format.Writer {
	return out.Token(llamaHeaderStart).Text(role).Token(llamaHeaderEnd).Text("\n\n")
}

// Open implements format.Family.
func (l *llama3) Open(out *format.Writer, _ format.Place) { l.head(out, chat.RoleAssistant) }

// Read implements format.Family.
func (l *llama3) Read(sampled []int32) (renderer.Parsed, error) {
	text, parsed, err := l.DecodeReply("", sampled)
	return format.WithReply(parsed, format.Reply{Text: text}), err
}
