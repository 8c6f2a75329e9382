// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// llama3 is the format of Llama 3's instruct models, without what their template says of dates:
//
//	<|begin_of_text|><|start_header_id|>user<|end_header_id|>
//
//	2+2?<|eot_id|>
//
// Calls of tools are left out, as in the reference: the model writes them as bare JSON, which cannot be told
// from an answer that is JSON.
type llama3 struct{ profile }

const (
	llamaBegin       = "<|begin_of_text|>"
	llamaHeaderStart = "<|start_header_id|>"
	llamaHeaderEnd   = "<|end_header_id|>"
	llamaEnd         = "<|eot_id|>"
)

func newLlama3(tokens tokenizer.Tokenizer, options Options) (family, error) {
	v, err := newVocabulary(tokens, options.Match, llamaBegin, llamaHeaderStart, llamaHeaderEnd, llamaEnd)
	if err != nil {
		return nil, err
	}
	stop := Stop{Tokens: []int32{v.id(llamaEnd)}}
	return &llama3{profile{vocabulary: v, begin: []int32{v.id(llamaBegin)}, stop: stop, end: llamaEnd, history: kept}}, nil
}

// write implements family.
func (l *llama3) write(out *chunks, at place) error {
	m := at.message()
	text, err := plainText(m)
	if err != nil {
		return err
	}
	l.head(out, m.Role).body()
	out.text(text).token(llamaEnd)
	return nil
}

func (l *llama3) head(out *chunks, role string) *chunks {
	return out.token(llamaHeaderStart).text(role).token(llamaHeaderEnd).text("\n\n")
}

// open implements family.
func (l *llama3) open(out *chunks, _ place) { l.head(out, chat.RoleAssistant) }

// read implements family.
func (l *llama3) read(sampled []int32) (Parsed, error) {
	text, parsed, err := l.cut("", sampled)
	return parsed.with(reply{text: text}), err
}
