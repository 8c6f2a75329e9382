// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/tsdecl"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Tokens of Kimi K2.
const (
	kimiSystem    = "<|im_system|>"
	kimiUser      = "<|im_user|>"
	kimiAssistant = "<|im_assistant|>"
	kimiMiddle    = "<|im_middle|>"

	kimiCallsOpen  = "<|tool_calls_section_begin|>"
	kimiCallsClose = "<|tool_calls_section_end|>"
	kimiCallOpen   = "<|tool_call_begin|>"
	kimiCallClose  = "<|tool_call_end|>"
	kimiArguments  = "<|tool_call_argument_begin|>"
	// Models sometimes spell the section this way.
	kimiOtherOpen  = "<|tool_call_section_begin|>"
	kimiOtherClose = "<|tool_call_section_end|>"
)

var kimiTokens = []string{kimiSystem, kimiUser, kimiAssistant, kimiMiddle, imEnd, kimiCallsOpen, kimiCallsClose, kimiCallOpen, kimiCallClose,
	kimiArguments, thinkOpen, thinkClose}

// roleDeclare is the role of the message that declares tools.
const roleDeclare = "tool_declare"

// kimi is the format of Kimi K2, K2.5 and K2.6:
//
//	<|im_user|>user<|im_middle|>2+2?<|im_end|><|im_assistant|>assistant<|im_middle|><think></think>4<|im_end|>
//
// Reasoning is kept since the last answer, which is a message of the assistant without calls.
type kimi struct {
	profile
	kimiVariant
}

type kimiVariant struct {
	history history
	// given is what the prompt begins a reply with, in tokens.
	given []string
	// keeps the reasoning of earlier turns.
	keeps bool
	// parted messages may be of several parts. Parts are tokenised apart.
	parted bool
	// declare writes tools.
	declare func(tools []chat.Tool) (string, error)
}

func newKimi(variant kimiVariant) builder {
	return func(tokens tokenizer.Tokenizer, options Options) (family, error) {
		v, err := newVocabulary(tokens, options.Match, kimiTokens...)
		if err != nil {
			return nil, err
		}
		stop := Stop{Tokens: []int32{v.id(imEnd)}}
		p := profile{vocabulary: v, stop: stop, end: imEnd, history: variant.history, turn: sinceLastAnswer}
		return &kimi{profile: p, kimiVariant: variant}, nil
	}
}

// sinceLastAnswer gives the index after the last message of the assistant that called no tool.
func sinceLastAnswer(messages []chat.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == chat.RoleAssistant && len(m.Calls) == 0 {
			return i + 1
		}
	}
	return 0
}

// arrange implements family: there is always a system message, after the declaration of tools.
func (k *kimi) arrange(conversation Conversation) ([]chat.Message, error) {
	messages := conversation.Messages
	if conversation.Tools == nil {
		return k.withSystem(messages), nil
	}
	system, rest, err := systemFirst(messages)
	if err != nil {
		return nil, err
	}
	var front []chat.Message
	if len(conversation.Tools) > 0 {
		text, err := k.declare(conversation.Tools)
		if err != nil {
			return nil, err
		}
		front = append(front, chat.Message{Role: roleDeclare, Content: text})
	}
	if system != "" {
		front = append(front, chat.Message{Role: chat.RoleSystem, Content: system})
	}
	return k.withSystem(append(front, rest...)), nil
}

func (k *kimi) withSystem(messages []chat.Message) []chat.Message {
	at := 0
	if len(messages) > 0 && messages[0].Role == roleDeclare {
		at = 1
	}
	if len(messages) > at && messages[at].Role == chat.RoleSystem {
		return messages
	}
	own := chat.Message{Role: chat.RoleSystem, Content: "You are Kimi, an AI assistant created by Moonshot AI."}
	return slices.Insert(slices.Clone(messages), at, own)
}

// write implements family.
func (k *kimi) write(out *chunks, at place) error {
	m := at.message()
	k.head(out, m).body()
	if m.Role == chat.RoleAssistant {
		k.assistant(out, m, at)
		return nil
	}
	text, err := plainText(m)
	switch {
	case err == nil:
		out.text(text)
	case k.parted && !hasThinking(m.AllParts()):
		for _, p := range m.AllParts() {
			out.text(p.Text).cut()
		}
	default:
		return err
	}
	out.token(imEnd)
	return nil
}

func (k *kimi) head(out *chunks, m chat.Message) *chunks {
	switch m.Role {
	case chat.RoleUser:
		return out.token(kimiUser).text(m.Role).token(kimiMiddle)
	case chat.RoleAssistant:
		return out.token(kimiAssistant).text(m.Role).token(kimiMiddle)
	case chat.RoleTool:
		name := m.Name
		if name == "" {
			name = m.Role
		}
		return out.token(kimiSystem).text(name).token(kimiMiddle).text("## Return of " + m.CallID + "\n")
	default:
		return out.token(kimiSystem).text(m.Role).token(kimiMiddle)
	}
}

func (k *kimi) assistant(out *chunks, m chat.Message, at place) {
	parts := m.AllParts()
	out.token(thinkOpen)
	if at.index >= at.turn || k.keeps {
		out.text(thinkingOf(parts))
	}
	out.token(thinkClose).text(textOf(parts))
	if len(m.Calls) > 0 {
		out.token(kimiCallsOpen)
		for i, call := range m.Calls {
			id := call.ID
			if id == "" {
				id = "functions." + call.Name + ":" + strconv.Itoa(i)
			}
			out.token(kimiCallOpen).text(id).token(kimiArguments).text(call.Arguments).token(kimiCallClose)
		}
		out.token(kimiCallsClose)
	}
	out.token(imEnd)
}

// open implements family.
func (k *kimi) open(out *chunks, _ place) {
	k.head(out, chat.Message{Role: chat.RoleAssistant})
	for _, name := range k.given {
		out.token(name)
	}
}

// read implements family.
func (k *kimi) read(sampled []int32) (Parsed, error) {
	prefix := ""
	if len(k.given) > 0 && sampledThought(k.vocabulary, sampled) {
		prefix = thinkOpen
	}
	text, parsed, err := k.cut(prefix, sampled)
	if err != nil || parsed.Ending == Truncated {
		return parsed, err
	}
	found := reply{text: text}
	if section, ok := kimiSection(text); ok {
		found.text = text[:section.begin]
		found.calls, found.unparsed = kimiTags.calls(section.inner, kimiCall)
	}
	found.unparsed = append(found.unparsed,
		dangling(text, kimiCallsOpen, kimiCallsClose, kimiOtherOpen, kimiOtherClose, kimiCallOpen, kimiCallClose)...)
	found.parts = thoughts(found.text)
	return parsed.with(found), nil
}

// kimiSection finds the first section of calls, in either spelling.
func kimiSection(text string) (span, bool) {
	section, ok := find(text, 0, kimiCallsOpen, kimiCallsClose)
	other, otherOK := find(text, 0, kimiOtherOpen, kimiOtherClose)
	if otherOK && (!ok || other.begin < section.begin) {
		return other, true
	}
	return section, ok
}

var kimiTags = callTags{opening: kimiCallOpen, separator: kimiArguments, closing: kimiCallClose}

func kimiCall(head string) (chat.ToolCall, bool) {
	id := pyjson.Strip(head)
	return chat.ToolCall{ID: id, Name: kimiName(id)}, isCallID(head)
}

// isCallID says whether text, white space apart, is a name, a colon and a number.
func isCallID(text string) bool {
	text = pyjson.StripRight(text)
	name := strings.TrimRightFunc(text, unicode.IsDigit)
	return len(name) < len(text) && strings.HasSuffix(name, ":") && len(name) > 1
}

// kimiName takes the name out of functions.name:0.
func kimiName(id string) string {
	name, _, _ := strings.Cut(id, ":")
	if _, after, ok := strings.Cut(name, "."); ok {
		return after
	}
	return name
}

// declareKimiK2 writes tools as JSON without spaces, its names in their order.
func declareKimiK2(tools []chat.Tool) (string, error) {
	list := make([]any, len(tools))
	for i, t := range tools {
		o, err := function(t)
		if err != nil {
			return "", err
		}
		list[i] = o
	}
	return pyjson.Style{Compact: true, Sorted: true}.JSON(list), nil
}

// declareKimiK25 writes tools as types of TypeScript.
func declareKimiK25(tools []chat.Tool) (string, error) {
	text, err := eachTool(tools, "\n", func(t chat.Tool) (string, error) {
		parameters, err := schema(t)
		if err != nil {
			return "", err
		}
		text, err := tsdecl.Interface(t.Name, t.Description, object(parameters))
		if err != nil {
			return "", fmt.Errorf("declaring tool %q: %w", t.Name, err)
		}
		return text, nil
	})
	return "# Tools\n\n## functions\nnamespace functions {\n" + text + "\n}\n", err
}
