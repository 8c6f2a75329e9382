// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
)

// Qwen and Nemotron, which write messages between <|im_start|> and <|im_end|>, share these tags.
const (
	imStart = "<|im_start|>"
	imEnd   = "<|im_end|>"

	emptyBlock = "<think>\n\n</think>\n\n"
)

// qwenTokens are the tokens that these families need.
var qwenTokens = []string{imStart, imEnd, format.ThinkOpen, format.ThinkClose, toolcall.Open, toolcall.Close,
	toolcall.ResultOpen, toolcall.ResultClose}

// chatML has the common parts of these families, whose format is known as ChatML.
type chatML struct {
	format.Profile
	// suffix follows the assistant's header in a prompt.
	suffix string
	// declare writes the system's text and the tools as one message.
	declare func(system string, tools []chat.Tool) (string, error)
	// unframe removes the format's own white space from the parts of a reply. It is nil if the format has no such white
	// space.
	unframe func(parts []chat.Part) []chat.Part
	// xml means that calls may be written as <function=name>, not only as JSON.
	xml bool
}

func newChatML(v *format.Vocabulary, h format.History) chatML {
	stop := renderer.Stop{Tokens: []int32{v.ID(imEnd)}}
	return chatML{Profile: format.Profile{Vocabulary: v, Stop: stop, End: imEnd, History: h}}
}

// Arrange implements format.Family: tools are declared in the system message.
func (f *chatML) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	return declareInSystem(conversation, f.declare)
}

// declareInSystem declares tools in the system message.
func declareInSystem(conversation renderer.Conversation, declare func(string, []chat.Tool) (string,
	error)) ([]chat.Message, error) {
	return format.Declare(conversation, func(system string, tools []chat.Tool) ([]chat.Message, error) {
		text, err := declare(system, tools)
		return []chat.Message{{Role: chat.RoleSystem, Content: text}}, err
	})
}

// header writes the header of a message, including the line break before it.
func header(out *format.Writer, at format.Place, role string) *format.Writer {
	if at.Index > 0 {
		out.Text("\n")
	}
	if role == chat.RoleTool {
		role = chat.RoleUser
	}
	return out.Token(imStart).Text(role + "\n")
}

// Open implements format.Family.
func (f *chatML) Open(out *format.Writer, at format.Place) {
	header(out, at, chat.RoleAssistant).Text(f.suffix)
}

// Read implements format.Family.
func (f *chatML) Read(sampled []int32) (renderer.Parsed, error) {
	text, parsed, err := f.DecodeReply(f.promptPrefix(sampled), sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	found := blocks(text, xmlIf(f.xml))
	if f.unframe != nil && found.Parts != nil {
		found.Parts = f.unframe(found.Parts)
	}
	found.Unparsed = append(found.Unparsed, format.Unterminated(text, toolcall.Open, toolcall.Close)...)
	return format.WithReply(parsed, found), nil
}

// promptPrefix returns the tag that the prompt has begun the reply with, if the reply closes a block of reasoning and
// does not open it.
func (f *chatML) promptPrefix(sampled []int32) string {
	if !f.xml || !slices.Contains(sampled, f.ID(format.ThinkClose)) {
		return ""
	}
	prefix := append([]int32{f.ID(format.ThinkOpen)}, f.Tokens.Encode("\n")...)
	if len(sampled) >= len(prefix) && slices.Equal(sampled[:len(prefix)], prefix) {
		return ""
	}
	return "<think>\n"
}

// xmlIf returns the reader of calls in XML, or nil.
func xmlIf(xml bool) toolcall.Reader {
	if xml {
		return toolcall.XML
	}
	return nil
}

// blocks splits a reply into reasoning, text and calls. The text between them keeps its white space. The function other
// reads a call that is not JSON; nil reads none.
func blocks(text string, other toolcall.Reader) format.Reply {
	out := format.Reply{Text: text}
	if !strings.Contains(text, format.ThinkOpen) && !strings.Contains(text, toolcall.Open) {
		return out
	}
	out.Parts = []chat.Part{}
	thoughts := format.Finder{Text: text, Opening: format.ThinkOpen, Closing: format.ThinkClose}
	calls := format.Finder{Text: text, Opening: toolcall.Open, Closing: toolcall.Close}
	var raw []string
	for at := 0; ; {
		thought, thinks := thoughts.From(at)
		call, isCall := calls.From(at)
		isCall = isCall && (!thinks || call.Begin < thought.Begin)
		switch {
		case isCall:
			out.Parts = format.AppendPart(out.Parts, text[at:call.Begin], false)
			raw = append(raw, text[call.Begin:call.End])
			at = call.End
		case thinks:
			out.Parts = format.AppendPart(out.Parts, text[at:thought.Begin], false)
			out.Parts = format.AppendPart(out.Parts, thought.Inner, true)
			at = thought.End
		default:
			out.Parts = format.AppendPart(out.Parts, text[at:], false)
			out.Calls, out.Unparsed = toolcall.Read(raw, other)
			return out
		}
	}
}
