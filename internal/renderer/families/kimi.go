// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/tsdecl"
)

// The tokens of Kimi K2.
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
	// Models sometimes write the section with these tags.
	kimiOtherOpen  = "<|tool_call_section_begin|>"
	kimiOtherClose = "<|tool_call_section_end|>"
)

var kimiTokens = []string{kimiSystem, kimiUser, kimiAssistant, kimiMiddle, imEnd, kimiCallsOpen, kimiCallsClose,
	kimiCallOpen, kimiCallClose,
	kimiArguments, format.ThinkOpen, format.ThinkClose}

// roleDeclare is the role of the message that declares tools.
const roleDeclare = "tool_declare"

// kimi is the format of Kimi K2, K2.5 and K2.6:
//
//	<|im_user|>user<|im_middle|>2+2?<|im_end|><|im_assistant|>assistant<|im_middle|><think></think>4<|im_end|>
//
// Reasoning after the last answer is kept. An answer is a message of the assistant without calls.
type kimi struct {
	format.Profile
	kimiVariant
}

type kimiVariant struct {
	history format.History
	// given are the tokens that the prompt begins a reply with.
	given []string
	// keeps means that the reasoning of earlier turns stays.
	keeps bool
	// partsAllowed means that messages may have several parts. Parts are tokenised apart.
	partsAllowed bool
	// declare writes the declaration of tools.
	declare func(tools []chat.Tool) (string, error)
}

func newKimi(variant kimiVariant) builder {
	return withTokens(kimiTokens, func(v *format.Vocabulary) format.Family {
		stop := renderer.Stop{Tokens: []int32{v.ID(imEnd)}}
		p := format.Profile{Vocabulary: v, Stop: stop, End: imEnd, History: variant.history, TurnStart: sinceLastAnswer}
		p.NoReasoning = slices.Contains(variant.given, format.ThinkClose)
		return &kimi{Profile: p, kimiVariant: variant}
	})
}

// sinceLastAnswer returns the index after the last message of the assistant that called no tool.
func sinceLastAnswer(messages []chat.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == chat.RoleAssistant && len(m.Calls) == 0 {
			return i + 1
		}
	}
	return 0
}

// Arrange implements format.Family: there is always a system message, after the declaration of tools.
func (k *kimi) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	messages, err := format.Declare(conversation, func(system string, tools []chat.Tool) (front []chat.Message,
		err error) {
		if len(tools) > 0 {
			var text string
			text, err = k.declare(tools)
			front = append(front, chat.Message{Role: roleDeclare, Content: text})
		}
		if system != "" {
			front = append(front, chat.Message{Role: chat.RoleSystem, Content: system})
		}
		return front, err
	})
	if err != nil {
		return nil, err
	}
	return k.withSystem(messages), nil
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

// Write implements format.Family.
func (k *kimi) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	k.head(out, m).Body()
	if m.Role == chat.RoleAssistant {
		k.assistant(out, m, at)
		return nil
	}
	text, err := format.PlainText(m)
	switch {
	case err == nil:
		out.Text(text)
	case k.partsAllowed && !format.HasThinking(m.AllParts()):
		for _, p := range m.AllParts() {
			out.Text(p.Text).Cut()
		}
	default:
		return err
	}
	out.Token(imEnd)
	return nil
}

func (k *kimi) head(out *format.Writer, m chat.Message) *format.Writer {
	switch m.Role {
	case chat.RoleUser:
		return out.Token(kimiUser).Text(m.Role).Token(kimiMiddle)
	case chat.RoleAssistant:
		return out.Token(kimiAssistant).Text(m.Role).Token(kimiMiddle)
	case chat.RoleTool:
		return out.Token(kimiSystem).Text(cmp.Or(m.Name, m.Role)).Token(kimiMiddle).Text("## Return of " + m.CallID + "\n")
	default:
		return out.Token(kimiSystem).Text(m.Role).Token(kimiMiddle)
	}
}

func (k *kimi) assistant(out *format.Writer, m chat.Message, at format.Place) {
	parts := m.AllParts()
	out.Token(format.ThinkOpen)
	if at.Index >= at.TurnStart || k.keeps {
		out.Text(format.ThinkingOf(parts))
	}
	out.Token(format.ThinkClose).Text(format.TextOf(parts))
	if len(m.Calls) > 0 {
		out.Token(kimiCallsOpen)
		for i, call := range m.Calls {
			id := cmp.Or(call.ID, "functions."+call.Name+":"+strconv.Itoa(i))
			out.Token(kimiCallOpen).Text(id).Token(kimiArguments).Text(call.Arguments).Token(kimiCallClose)
		}
		out.Token(kimiCallsClose)
	}
	out.Token(imEnd)
}

// Open implements format.Family.
func (k *kimi) Open(out *format.Writer, _ format.Place) {
	k.head(out, chat.Message{Role: chat.RoleAssistant})
	for _, name := range k.given {
		out.Token(name)
	}
}

// Read implements format.Family.
func (k *kimi) Read(sampled []int32) (renderer.Parsed, error) {
	prefix := ""
	if len(k.given) > 0 && closesReasoning(k.Vocabulary, sampled) {
		prefix = format.ThinkOpen
	}
	text, parsed, err := k.DecodeReply(prefix, sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	return format.WithReply(parsed, readKimi(text)), nil
}

// kimiSection finds the first section of calls, in either spelling.
func kimiSection(text string) (format.Span, bool) {
	section, ok := format.Find(text, 0, kimiCallsOpen, kimiCallsClose)
	other, otherOK := format.Find(text, 0, kimiOtherOpen, kimiOtherClose)
	if otherOK && (!ok || other.Begin < section.Begin) {
		return other, true
	}
	return section, ok
}

var kimiTags = format.CallTags{Opening: kimiCallOpen, Separator: kimiArguments, Closing: kimiCallClose}

func kimiCall(head string) (chat.ToolCall, bool) {
	id := pyjson.Strip(head)
	return chat.ToolCall{ID: id, Name: kimiName(id)}, isCallID(head)
}

// isCallID reports whether text is a name, a colon and a number, followed by optional white space.
func isCallID(text string) bool {
	text = pyjson.StripRight(text)
	name := strings.TrimRightFunc(text, unicode.IsDigit)
	return len(name) < len(text) && strings.HasSuffix(name, ":") && len(name) > 1
}

// kimiName returns the name in functions.name:0.
func kimiName(id string) string {
	name, _, _ := strings.Cut(id, ":")
	if _, after, ok := strings.Cut(name, "."); ok {
		return after
	}
	return name
}

// declareKimiK2 writes tools as JSON without spaces and with sorted names.
func declareKimiK2(tools []chat.Tool) (string, error) {
	list := make([]any, len(tools))
	for i, t := range tools {
		o, err := format.Function(t)
		if err != nil {
			return "", err
		}
		list[i] = o
	}
	return pyjson.Style{Compact: true, Sorted: true}.JSON(list), nil
}

// declareKimiK25 writes tools as types of TypeScript.
func declareKimiK25(tools []chat.Tool) (string, error) {
	text, err := format.EachTool(tools, "\n", func(t chat.Tool) (string, error) {
		parameters, err := format.Schema(t)
		if err != nil {
			return "", err
		}
		text, err := tsdecl.Interface(t.Name, t.Description, pyjson.ObjectOf(parameters))
		if err != nil {
			return "", fmt.Errorf("declaring tool %q: %w", t.Name, err)
		}
		return text, nil
	})
	return "# Tools\n\n## functions\nnamespace functions {\n" + text + "\n}\n", err
}
