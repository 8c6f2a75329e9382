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

// nemotronVariant has the settings in which the variants differ.
type nemotronVariant struct {
	history format.History
	// ultra is the format of Nemotron 3 Ultra and 3.5, which writes no line break around </think>.
	ultra bool
	// keeps means that the reasoning of earlier turns stays.
	keeps bool
	// noThinking means that the prompt closes the block of reasoning.
	noThinking bool
	// effort is written below the user's last message.
	effort string
	// partsAllowed means that effort may follow a message of several parts.
	partsAllowed bool
}

// nemotron is the format of Nemotron 3 and 3.5. It differs from Qwen3.5's: there is always a system message, with the
// tools below it, every turn without visible reasoning has an empty block, and calls and tools' results end in a line
// break.
type nemotron struct{ *dialect }

const emptyThought = format.ThinkOpen + format.ThinkClose

func newNemotron(variant nemotronVariant) builder {
	return withTokens(qwenTokens, func(v *format.Vocabulary) format.Family {
		d := &dialect{chatML: newChatML(v, variant.history), result: "\n" + toolcall.ResultClose + "\n", grouped: true}
		d.suffix, d.xml = "<think>\n", true
		d.declare, d.prepare = declareNemotron, variant.prepare
		d.strips = func(at format.Place) bool { return !variant.keeps && at.Index < at.LastUser }
		d.lead, d.thinking, d.calls, d.unframe = variant.lead, variant.thinking, variant.calls, unframeQwen35
		if variant.noThinking {
			d.suffix, d.NoReasoning = emptyThought, true
		}
		return &nemotron{dialect: d}
	})
}

// Arrange implements format.Family.
func (n *nemotron) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	messages, err := n.dialect.Arrange(conversation)
	if err != nil || len(messages) > 0 && messages[0].Role == chat.RoleSystem {
		return messages, err
	}
	return slices.Concat([]chat.Message{{Role: chat.RoleSystem}}, messages), nil
}

// prepare trims a message of one text, and appends the effort to the user's last message.
func (n nemotronVariant) prepare(m chat.Message, at format.Place) (chat.Message, error) {
	if n.effort != "" && m.Role == chat.RoleUser && at.Index == at.LastUser {
		switch {
		case !m.IsStructured():
			m.Content += n.effort
		case n.partsAllowed:
			m = m.WithParts(append(slices.Clone(m.AllParts()), chat.Part{Text: n.effort}))
		default:
			return m, fmt.Errorf("the effort is put below a message of one text, not of parts: %w", renderer.ErrUnsupported)
		}
	}
	if !m.IsStructured() {
		m.Content = pyjson.Strip(m.Content)
	}
	return m, nil
}

// lead returns the empty block of a turn whose reasoning is not written, because the turn has no reasoning or because
// it is dropped. The line break after dropped reasoning stays before text.
func (n nemotronVariant) lead(m chat.Message, at format.Place) string {
	old := at.Index < at.LastUser
	switch {
	case !format.HasReasoning(m):
		return emptyThought
	case !old || n.keeps:
		return ""
	case !n.ultra && m.IsStructured() && format.HasText(m.AllParts()) && len(m.Calls) == 0:
		return emptyThought + "\n"
	default:
		return emptyThought
	}
}

func (n nemotronVariant) thinking(text string) string {
	if n.ultra {
		return "<think>\n" + text + format.ThinkClose
	}
	return "<think>\n" + text + "\n</think>\n"
}

// calls writes calls, separated from the text before them. Reasoning already ends in a line break.
func (n nemotronVariant) calls(m chat.Message) (string, error) {
	calls, err := toolcall.WriteXML(m.Calls, pyjson.Str)
	text := strings.Join(calls, "\n") + "\n"
	if !n.ultra && m.IsStructured() && format.HasThinking(m.AllParts()) && !format.HasText(m.AllParts()) {
		return text, err
	}
	return "\n" + text, err
}

func declareNemotron(system string, tools []chat.Tool) (string, error) {
	text, err := toolcall.DeclareXMLTools(tools, nemotronTool)
	return toolcall.Paragraphs(system, text), err
}

// nemotronTool declares one tool as XML.
func nemotronTool(t chat.Tool) (string, error) {
	parameters, err := format.Schema(t)
	if err != nil {
		return "", err
	}
	lines := []string{"<function>", "<name>" + t.Name + "</name>"}
	if description := pyjson.Strip(t.Description); description != "" {
		lines = append(lines, "<description>"+description+"</description>")
	}
	lines = append(lines, "<parameters>")
	if parameters != nil {
		lines = append(lines, nemotronParameters(parameters)...)
	}
	return strings.Join(append(lines, "</parameters>", "</function>"), "\n"), nil
}

func nemotronParameters(parameters *pyjson.Object) []string {
	var lines []string
	properties, _ := parameters.Get("properties")
	for _, property := range pyjson.ObjectOf(properties).Fields {
		fields := pyjson.ObjectOf(property.Value)
		lines = append(lines, "<parameter>", "<name>"+pyjson.Text(property.Name)+"</name>")
		if kind, ok := fields.Get("type"); ok {
			lines = append(lines, "<type>"+pyjson.Str(kind)+"</type>")
		}
		if _, ok := fields.Get("description"); ok {
			lines = append(lines, "<description>"+pyjson.Strip(fields.Word("description"))+"</description>")
		}
		if values, ok := fields.Get("enum"); ok {
			lines = append(lines, "<enum>"+pyjson.JSON(values)+"</enum>")
		}
		lines = append(lines, otherFields(fields, "name", "type", "description", "enum")...)
		lines = append(lines, "</parameter>")
	}
	lines = append(lines, otherFields(parameters, "type", "properties", "required")...)
	if required, ok := parameters.Get("required"); ok {
		lines = append(lines, "<required>"+pyjson.JSON(required)+"</required>")
	}
	return lines
}

// otherFields writes the fields of an object, except fields with a known name.
func otherFields(o *pyjson.Object, known ...string) []string {
	var lines []string
	for _, f := range o.Fields {
		if slices.Contains(known, f.Name) {
			continue
		}
		name := pyjson.Text(f.Name)
		lines = append(lines, "<"+name+">"+toolcall.ArgumentText(f.Value, pyjson.Str)+"</"+name+">")
	}
	return lines
}
