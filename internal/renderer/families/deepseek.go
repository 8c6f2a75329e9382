// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// The tokens of DeepSeek-V3. The bars are U+FF5C, and the gaps U+2581.
const (
	deepseekBegin     = "<｜begin▁of▁sentence｜>"
	deepseekEnd       = "<｜end▁of▁sentence｜>"
	deepseekUser      = "<｜User｜>"
	deepseekAssistant = "<｜Assistant｜>"

	deepseekCallsOpen   = "<｜tool▁calls▁begin｜>"
	deepseekCallsClose  = "<｜tool▁calls▁end｜>"
	deepseekCallOpen    = "<｜tool▁call▁begin｜>"
	deepseekCallClose   = "<｜tool▁call▁end｜>"
	deepseekCallSep     = "<｜tool▁sep｜>"
	deepseekResultOpen  = "<｜tool▁output▁begin｜>"
	deepseekResultClose = "<｜tool▁output▁end｜>"
)

var deepseekTokens = []string{deepseekBegin, deepseekEnd, deepseekUser, deepseekAssistant, deepseekCallsOpen,
	deepseekCallsClose, deepseekCallOpen,
	deepseekCallClose, deepseekCallSep, deepseekResultOpen, deepseekResultClose, format.ThinkOpen, format.ThinkClose}

// deepseek is the format of DeepSeek-V3.1, which has no line breaks of its own:
//
//	<｜begin▁of▁sentence｜>Be brief.<｜User｜>2+2?<｜Assistant｜></think>4<｜end▁of▁sentence｜>
//
// After a tool's result the assistant continues without a header. An assistant's message without text, which only calls
// a tool, has no end token when it is written from its text; sampled ids keep theirs.
type deepseek struct {
	format.Profile
	deepseekVariant
}

type deepseekVariant struct {
	history format.History
	// thinks means that the prompt opens a block of reasoning. Otherwise it closes one.
	thinks bool
	// keeps means that the reasoning of earlier turns stays.
	keeps bool
}

func newDeepseek(variant deepseekVariant) builder {
	return withTokens(deepseekTokens, func(v *format.Vocabulary) format.Family {
		stop := renderer.Stop{Tokens: []int32{v.ID(deepseekEnd)}}
		begin := []int32{v.ID(deepseekBegin)}
		p := format.Profile{Vocabulary: v, Begin: begin, Stop: stop, End: deepseekEnd, History: variant.history}
		return &deepseek{Profile: p, deepseekVariant: variant}
	})
}

// Arrange implements format.Family: the tools follow the system's text.
func (d *deepseek) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	return format.Declare(conversation, func(system string, tools []chat.Tool) ([]chat.Message, error) {
		blocks, err := format.EachTool(tools, "\n", deepseekTool)
		first := chat.Message{Role: chat.RoleSystem, Content: system}
		if len(tools) > 0 {
			first.Content += "\n\n## Tools\nYou have access to the following tools:\n\n" + blocks + "\n\n"
			first.Name = declared
		}
		return []chat.Message{first}, err
	})
}

// declared is the name of a system message that ends with the instructions for calling tools. No caller can use it: no
// format reads the name of a system message, and this one is not a valid name.
const declared = "\x00tools"

func deepseekTool(t chat.Tool) (string, error) {
	parameters, err := format.Schema(t)
	if err != nil {
		return "", err
	}
	return "### " + t.Name + "\nDescription: " + t.Description + "\n\nParameters: " +
		pyjson.JSON(pyjson.ObjectOf(parameters)), nil
}

// howToCall writes the end of the declaration of tools. It contains special tokens.
func (d *deepseek) howToCall(out *format.Writer) {
	out.Text("IMPORTANT: ALWAYS adhere to this exact format for tool use:\n")
	d.calls(out, []chat.ToolCall{{Name: "tool_call_name", Arguments: "tool_call_arguments"}})
	out.Text("\n\nWhere:\n- `tool_call_name` must be an exact match to one of the available tools\n" +
		"- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n" +
		"- For multiple tool calls, chain them directly without separators or spaces")
}

// calls writes calls.
func (d *deepseek) calls(out *format.Writer, calls []chat.ToolCall) {
	if len(calls) == 0 {
		return
	}
	out.Token(deepseekCallsOpen)
	for _, call := range calls {
		out.Token(deepseekCallOpen).Text(call.Name).Token(deepseekCallSep).Text(call.Arguments).Token(deepseekCallClose)
	}
	out.Token(deepseekCallsClose)
}

// Write implements format.Family.
func (d *deepseek) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	if m.Role == chat.RoleAssistant {
		d.assistant(out, m, at)
		return nil
	}
	text, err := format.PlainText(m)
	if err != nil {
		return err
	}
	switch m.Role {
	case chat.RoleSystem:
		if at.Index > 0 {
			return fmt.Errorf("a system message has to be the first: %w", renderer.ErrUnsupported)
		}
		out.Body().Text(text)
		if m.Name == declared {
			d.howToCall(out)
		}
	case chat.RoleUser:
		out.Token(deepseekUser).Body().Text(text)
	case chat.RoleTool:
		out.Token(deepseekResultOpen).Body().Text(text).Token(deepseekResultClose)
	default:
		return fmt.Errorf("the format knows the roles system, user, assistant and tool: %w", renderer.ErrUnsupported)
	}
	d.calls(out, m.Calls)
	return nil
}

func (d *deepseek) assistant(out *format.Writer, m chat.Message, at format.Place) {
	follows := at.Follows(chat.RoleTool)
	if !follows {
		out.Token(deepseekAssistant)
	}
	switch {
	case follows:
		out.Body()
	case !d.thinks:
		m = m.WithText(textWithoutReasoning(m))
		out.Token(format.ThinkClose).Body()
	case !d.keeps && !at.IsLast():
		out.Token(format.ThinkClose).Body()
	default:
		out.Body()
		d.emptyBlock(out, m, at)
	}
	d.writeParts(out, m, d.keeps || len(m.Calls) > 0 || at.IsLast())
	d.calls(out, m.Calls)
	if !m.IsEmpty() {
		out.Token(deepseekEnd)
	}
}

// emptyBlock writes the empty block before a last message without reasoning.
func (d *deepseek) emptyBlock(out *format.Writer, m chat.Message, at format.Place) {
	if at.IsLast() && !m.IsEmpty() && !format.HasReasoning(m) {
		out.Token(format.ThinkOpen).Token(format.ThinkClose)
	}
}

// writeParts writes the content of a message. It leaves out the reasoning unless reasoning is set.
func (d *deepseek) writeParts(out *format.Writer, m chat.Message, reasoning bool) {
	for _, p := range m.AllParts() {
		switch {
		case !p.Thinking:
			out.Text(p.Text)
		case reasoning:
			out.Token(format.ThinkOpen).Text(p.Text).Token(format.ThinkClose)
		}
	}
}

// textWithoutReasoning returns the text of a message without its reasoning.
func textWithoutReasoning(m chat.Message) string {
	if m.IsStructured() {
		return format.TextOf(m.AllParts())
	}
	return withoutBlocks(m.Content, format.ThinkOpen, format.ThinkClose, func(before string) string { return before })
}

// withoutBlocks removes all blocks from a text. trim trims the text before each block.
func withoutBlocks(text, opening, closing string, trim func(before string) string) string {
	var out strings.Builder
	at := 0
	for {
		block, ok := format.Find(text, at, opening, closing)
		if !ok {
			return out.String() + text[at:]
		}
		out.WriteString(trim(text[at:block.Begin]))
		at = block.End
	}
}

// Open implements format.Family.
func (d *deepseek) Open(out *format.Writer, at format.Place) {
	switch {
	case at.Follows(chat.RoleTool):
	case d.thinks:
		out.Token(deepseekAssistant).Token(format.ThinkOpen)
	default:
		out.Token(deepseekAssistant).Token(format.ThinkClose)
	}
}

// Read implements format.Family.
func (d *deepseek) Read(sampled []int32) (renderer.Parsed, error) {
	prefix := ""
	if d.thinks && closesReasoning(d.Vocabulary, sampled) {
		prefix = format.ThinkOpen
	}
	text, parsed, err := d.DecodeReply(prefix, sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	return format.WithReply(parsed, readDeepseek(text)), nil
}

// closesReasoning reports whether a reply closes a block of reasoning that the prompt has opened.
func closesReasoning(v *format.Vocabulary, sampled []int32) bool {
	return len(sampled) > 0 && sampled[0] != v.ID(format.ThinkOpen) && slices.Contains(sampled, v.ID(format.ThinkClose))
}

// unclosed returns an unparsed call for the first pair of tags that is opened and never closed.
func unclosed(text string, tags ...string) []renderer.UnparsedCall {
	for pair := range slices.Chunk(tags, 2) {
		if open := format.Unterminated(text, pair[0], pair[1]); open != nil {
			return open
		}
	}
	return nil
}

var deepseekTags = format.CallTags{Opening: deepseekCallOpen, Separator: deepseekCallSep, Closing: deepseekCallClose}

func deepseekCall(head string) (chat.ToolCall, bool) { return chat.ToolCall{Name: head}, isWord(head) }

// isWord reports whether a name consists of letters, digits and underscores.
func isWord(name string) bool {
	return name != "" && strings.IndexFunc(name,
		func(r rune) bool { return r != '_' && !unicode.In(r, unicode.L, unicode.N) }) < 0
}
