// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Tokens of DeepSeek-V3. The bars are U+FF5C, the gaps U+2581.
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

var deepseekTokens = []string{deepseekBegin, deepseekEnd, deepseekUser, deepseekAssistant, deepseekCallsOpen, deepseekCallsClose, deepseekCallOpen,
	deepseekCallClose, deepseekCallSep, deepseekResultOpen, deepseekResultClose, thinkOpen, thinkClose}

// deepseek is the format of DeepSeek-V3.1, which has no line breaks of its own:
//
//	<｜begin▁of▁sentence｜>Be brief.<｜User｜>2+2?<｜Assistant｜></think>4<｜end▁of▁sentence｜>
//
// After a tool's result the assistant goes on without a header. An assistant's message that says nothing,
// because it only calls a tool, is not ended when it is written anew; the ids of one that was sampled are.
type deepseek struct {
	profile
	deepseekVariant
}

type deepseekVariant struct {
	history history
	// thinks has the prompt open a block of reasoning, not close it.
	thinks bool
	// keeps the reasoning of earlier turns.
	keeps bool
}

func newDeepseek(variant deepseekVariant) builder {
	return func(tokens tokenizer.Tokenizer, options Options) (family, error) {
		v, err := newVocabulary(tokens, options.Match, deepseekTokens...)
		if err != nil {
			return nil, err
		}
		stop := Stop{Tokens: []int32{v.id(deepseekEnd)}}
		begin := []int32{v.id(deepseekBegin)}
		p := profile{vocabulary: v, begin: begin, stop: stop, end: deepseekEnd, history: variant.history}
		return &deepseek{profile: p, deepseekVariant: variant}, nil
	}
}

// arrange implements family: the tools stand below the system's text, where write puts them.
func (d *deepseek) arrange(conversation Conversation) ([]chat.Message, error) {
	if conversation.Tools == nil {
		return conversation.Messages, nil
	}
	system, rest, err := systemFirst(conversation.Messages)
	if err != nil {
		return nil, err
	}
	blocks, err := eachTool(conversation.Tools, "\n", deepseekTool)
	if err != nil {
		return nil, err
	}
	first := chat.Message{Role: chat.RoleSystem, Content: system}
	if len(conversation.Tools) > 0 {
		first.Content += "\n\n## Tools\nYou have access to the following tools:\n\n" + blocks + "\n\n"
		first.Name = declared
	}
	return slices.Concat([]chat.Message{first}, rest), nil
}

// declared is the name of a system message that ends in how tools are called. No caller can give it: a name
// of a system message means nothing to any format, and this one is no name.
const declared = "\x00tools"

func deepseekTool(t chat.Tool) (string, error) {
	parameters, err := schema(t)
	if err != nil {
		return "", err
	}
	return "### " + t.Name + "\nDescription: " + t.Description + "\n\nParameters: " + pyjson.JSON(object(parameters)), nil
}

// howToCall ends the declaration of tools. The tokens in it are tokens.
func (d *deepseek) howToCall(out *chunks) {
	out.text("IMPORTANT: ALWAYS adhere to this exact format for tool use:\n")
	d.calls(out, []chat.ToolCall{{Name: "tool_call_name", Arguments: "tool_call_arguments"}})
	out.text("\n\nWhere:\n- `tool_call_name` must be an exact match to one of the available tools\n" +
		"- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n" +
		"- For multiple tool calls, chain them directly without separators or spaces")
}

// calls writes calls.
func (d *deepseek) calls(out *chunks, calls []chat.ToolCall) {
	if len(calls) == 0 {
		return
	}
	out.token(deepseekCallsOpen)
	for _, call := range calls {
		out.token(deepseekCallOpen).text(call.Name).token(deepseekCallSep).text(call.Arguments).token(deepseekCallClose)
	}
	out.token(deepseekCallsClose)
}

// write implements family.
func (d *deepseek) write(out *chunks, at place) error {
	m := at.message()
	if m.Role == chat.RoleAssistant {
		d.assistant(out, m, at)
		return nil
	}
	text, err := plainText(m)
	if err != nil {
		return err
	}
	switch m.Role {
	case chat.RoleSystem:
		if at.index > 0 {
			return fmt.Errorf("a system message has to be the first: %w", ErrUnsupported)
		}
		out.body().text(text)
		if m.Name == declared {
			d.howToCall(out)
		}
	case chat.RoleUser:
		out.token(deepseekUser).body().text(text)
	case chat.RoleTool:
		out.token(deepseekResultOpen).body().text(text).token(deepseekResultClose)
	default:
		return fmt.Errorf("the format knows the roles system, user, assistant and tool: %w", ErrUnsupported)
	}
	d.calls(out, m.Calls)
	return nil
}

func (d *deepseek) assistant(out *chunks, m chat.Message, at place) {
	follows := at.after(chat.RoleTool)
	if !follows {
		out.token(deepseekAssistant)
	}
	switch {
	case follows:
		out.body()
	case !d.thinks:
		m = m.WithText(unthought(m))
		out.token(thinkClose).body()
	case !d.keeps && !at.isLast():
		out.token(thinkClose).body()
	default:
		out.body()
		d.emptyBlock(out, m, at)
	}
	d.says(out, m, d.keeps || len(m.Calls) > 0 || at.isLast())
	d.calls(out, m.Calls)
	if !m.IsEmpty() {
		out.token(deepseekEnd)
	}
}

// emptyBlock stands before a last message without reasoning.
func (d *deepseek) emptyBlock(out *chunks, m chat.Message, at place) {
	if at.isLast() && !m.IsEmpty() && !hasReasoning(m) {
		out.token(thinkOpen).token(thinkClose)
	}
}

// says writes what a message says, with its reasoning or without.
func (d *deepseek) says(out *chunks, m chat.Message, reasoning bool) {
	for _, p := range m.AllParts() {
		switch {
		case !p.Thinking:
			out.text(p.Text)
		case reasoning:
			out.token(thinkOpen).text(p.Text).token(thinkClose)
		}
	}
}

// unthought gives the text of a message without its reasoning.
func unthought(m chat.Message) string {
	if m.IsStructured() {
		return textOf(m.AllParts())
	}
	return without(m.Content, thinkOpen, thinkClose)
}

// without takes all blocks out of a text.
func without(text, opening, closing string) string {
	var out strings.Builder
	at := 0
	for {
		block, ok := find(text, at, opening, closing)
		if !ok {
			return out.String() + text[at:]
		}
		out.WriteString(text[at:block.begin])
		at = block.end
	}
}

// open implements family.
func (d *deepseek) open(out *chunks, at place) {
	switch {
	case at.after(chat.RoleTool):
	case d.thinks:
		out.token(deepseekAssistant).token(thinkOpen)
	default:
		out.token(deepseekAssistant).token(thinkClose)
	}
}

// read implements family.
func (d *deepseek) read(sampled []int32) (Parsed, error) {
	prefix := ""
	if d.thinks && sampledThought(d.vocabulary, sampled) {
		prefix = thinkOpen
	}
	text, parsed, err := d.cut(prefix, sampled)
	if err != nil || parsed.Ending == Truncated {
		return parsed, err
	}
	found := reply{text: text}
	if section, ok := find(text, 0, deepseekCallsOpen, deepseekCallsClose); ok {
		found.calls, found.unparsed = deepseekTags.calls(section.inner, deepseekCall)
	}
	found.unparsed = append(found.unparsed, dangling(text, deepseekCallsOpen, deepseekCallsClose, deepseekCallOpen, deepseekCallClose)...)
	if len(found.calls)+len(found.unparsed) > 0 {
		found.text = pyjson.Strip(withoutSections(text))
	}
	found.parts = thoughts(found.text)
	return parsed.with(found), nil
}

// sampledThought says whether a reply closes a block of reasoning that the prompt has opened.
func sampledThought(v *vocabulary, sampled []int32) bool {
	return len(sampled) > 0 && sampled[0] != v.id(thinkOpen) && slices.Contains(sampled, v.id(thinkClose))
}

// dangling gives the first kind of block, by pairs of tags, that is opened and never closed.
func dangling(text string, tags ...string) []UnparsedCall {
	for pair := range slices.Chunk(tags, 2) {
		if open := unterminated(text, pair[0], pair[1]); open != nil {
			return open
		}
	}
	return nil
}

var deepseekTags = callTags{opening: deepseekCallOpen, separator: deepseekCallSep, closing: deepseekCallClose}

func deepseekCall(head string) (chat.ToolCall, bool) { return chat.ToolCall{Name: head}, isWord(head) }

// isWord says whether a name is made of letters, digits and underscores.
func isWord(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return r != '_' && !unicode.In(r, unicode.L, unicode.N) }) < 0
}

// withoutSections takes all sections of calls out of a text, with the white space before each.
func withoutSections(text string) string {
	var out strings.Builder
	at := 0
	for {
		block, ok := find(text, at, deepseekCallsOpen, deepseekCallsClose)
		if !ok {
			return out.String() + text[at:]
		}
		out.WriteString(pyjson.StripRight(text[at:block.begin]))
		at = block.end
	}
}
