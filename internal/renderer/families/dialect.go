// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
)

// dialectRenderer writes and reads calls of tools as text between <tool_call> tags, whatever the format's own calls
// are.
type dialectRenderer struct {
	renderer.Renderer
	// xml means that a call is <function=name> with its parameters, as Qwen3.5 writes it. Otherwise it is a JSON object,
	// as Qwen3 writes it.
	xml bool
	// tagged means that the format reads these tags itself, and writes results of tools as text between tags.
	tagged bool
}

// WithCalls returns a renderer that declares, writes and reads calls of tools as text between <tool_call> tags, in XML
// or in JSON. A reply in the format's own dialect is also read.
func WithCalls(r renderer.Renderer, xml bool) renderer.Renderer {
	_, isTagged := format.FamilyOf(r).(interface{ isTagged() })
	return &dialectRenderer{Renderer: r, xml: xml, tagged: isTagged}
}

func (*chatML) isTagged() {}
func (*glm) isTagged()    {}

// Prompt implements renderer.Renderer.
func (d *dialectRenderer) Prompt(conversation renderer.Conversation) ([]int32, error) {
	conversation, err := d.asText(conversation)
	if err != nil {
		return nil, err
	}
	return d.Renderer.Prompt(conversation)
}

// Example implements renderer.Renderer.
func (d *dialectRenderer) Example(conversation renderer.Conversation, parts bool) (renderer.Example, error) {
	text, err := d.asText(conversation)
	if err != nil {
		return renderer.Example{}, err
	}
	example, err := d.Renderer.Example(text, parts)
	for i := range example.Written {
		example.Written[i].Message += len(conversation.Messages) - len(text.Messages)
	}
	return example, err
}

// asText returns a conversation with calls, results and declarations as text.
func (d *dialectRenderer) asText(conversation renderer.Conversation) (renderer.Conversation, error) {
	conversation.Messages = slices.Clone(conversation.Messages)
	for i := range conversation.Messages {
		if err := d.flatten(&conversation.Messages[i]); err != nil {
			return conversation, fmt.Errorf("rendering message %d: %w", i, err)
		}
	}
	declare := toolcall.DeclareJSON
	if d.xml {
		declare = toolcall.DeclareXML
	}
	var err error
	conversation.Messages, err = declareInSystem(conversation, declare)
	conversation.Tools = nil
	return conversation, err
}

// flatten writes the calls of a message, or the result of a tool, as text.
func (d *dialectRenderer) flatten(m *chat.Message) error {
	if m.Role == chat.RoleTool && !d.tagged {
		m.Role, m.Content, m.CallID, m.Name = chat.RoleUser, toolcall.ResultOpen+"\n"+m.Content+"\n"+toolcall.ResultClose, "",
			""
	}
	if len(m.Calls) == 0 {
		return nil
	}
	text, err := toolcall.WriteJSON(m.Calls)
	if d.xml {
		var calls []string
		calls, err = toolcall.WriteXML(m.Calls, pyjson.Str)
		text = strings.Join(calls, "\n")
	}
	if err != nil {
		return err
	}
	if m.IsStructured() {
		m.Parts, m.Thinking = format.AppendPart(slices.Clone(m.AllParts()), "\n"+text, false), ""
	} else if m.Content != "" {
		text = m.Content + "\n" + text
	}
	m.Content, m.Calls = text, nil
	return nil
}

// Parse implements renderer.Renderer.
func (d *dialectRenderer) Parse(sampled []int32) (renderer.Parsed, error) {
	parsed, err := d.Renderer.Parse(sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	if d.tagged {
		return d.readAgain(parsed), nil
	}
	m := parsed.Message
	found := format.Reply{Calls: m.Calls, Unparsed: parsed.Unparsed}
	var raw []string
	for _, part := range m.AllParts() {
		if part.Thinking {
			found.Parts = format.AppendPart(found.Parts, part.Text, true)
			continue
		}
		text, calls := cutCalls(part.Text)
		found.Parts = format.AppendPart(found.Parts, text, false)
		found.Text += text
		raw = append(raw, calls...)
		found.Unparsed = append(found.Unparsed, format.Unterminated(part.Text, toolcall.Open, toolcall.Close)...)
	}
	if !m.IsStructured() {
		found.Parts = nil
	}
	calls, unparsed := toolcall.Read(raw, toolcall.XML)
	found.Calls, found.Unparsed = append(found.Calls, calls...), append(found.Unparsed, unparsed...)
	return format.WithReply(parsed, found), nil
}

// cutCalls splits a text into the text outside of calls and the calls, including their tags.
func cutCalls(text string) (outside string, raw []string) {
	calls := format.Finder{Text: text, Opening: toolcall.Open, Closing: toolcall.Close}
	at := 0
	for call, ok := calls.From(at); ok; call, ok = calls.From(at) {
		outside += text[at:call.Begin]
		raw = append(raw, text[call.Begin:call.End])
		at = call.End
	}
	return outside + text[at:], raw
}

// readAgain reads the calls that a format between the same tags could not read.
func (d *dialectRenderer) readAgain(parsed renderer.Parsed) renderer.Parsed {
	if !d.xml || len(parsed.Unparsed) == 0 {
		return parsed
	}
	var raw []string
	var unparsed []renderer.UnparsedCall
	for _, call := range parsed.Unparsed {
		if strings.HasSuffix(call.Text, toolcall.Close) {
			raw = append(raw, call.Text)
		} else {
			unparsed = append(unparsed, call)
		}
	}
	if parsed.Problem == format.Unreadable(parsed.Unparsed) {
		parsed.Ending, parsed.Problem = renderer.Stopped, ""
	}
	calls, broken := toolcall.Read(raw, toolcall.XML)
	unparsed = append(broken, unparsed...)
	m := parsed.Message
	return format.WithReply(parsed, format.Reply{Text: m.Content, Parts: m.Parts, Calls: append(m.Calls, calls...),
		Unparsed: unparsed})
}
