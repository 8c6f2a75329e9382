// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// What the families share that write messages between <|im_start|> and <|im_end|>: Qwen and Nemotron.
const (
	imStart = "<|im_start|>"
	imEnd   = "<|im_end|>"

	callOpen    = "<tool_call>"
	callClose   = "</tool_call>"
	resultOpen  = "<tool_response>"
	resultClose = "</tool_response>"

	emptyBlock = "<think>\n\n</think>\n\n"
)

// qwenTokens are the tokens that the families cannot do without.
var qwenTokens = []string{imStart, imEnd, thinkOpen, thinkClose, callOpen, callClose, resultOpen, resultClose}

// im is what the families have in common.
type im struct {
	profile
	// suffix follows the assistant's header in a prompt.
	suffix string
	// declare puts the system's text and the tools into one message.
	declare func(system string, tools []chat.Tool) (string, error)
	// unframe takes the white space of the format's own out of what was read; nil for none.
	unframe func(parts []chat.Part) []chat.Part
	// xml says that calls may be written as <function=name>, not only as JSON.
	xml bool
}

func newIM(v *vocabulary, h history) im {
	stop := Stop{Tokens: []int32{v.id(imEnd)}}
	return im{profile: profile{vocabulary: v, stop: stop, end: imEnd, history: h}}
}

// arrange implements family: tools stand in the system message.
func (f *im) arrange(conversation Conversation) ([]chat.Message, error) {
	if conversation.Tools == nil {
		return conversation.Messages, nil
	}
	system, rest, err := systemFirst(conversation.Messages)
	if err != nil {
		return nil, err
	}
	text, err := f.declare(system, conversation.Tools)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]chat.Message{{Role: chat.RoleSystem, Content: text}}, rest), nil
}

// header writes how a message begins. The line break before it belongs to it.
func header(out *chunks, at place, role string) *chunks {
	if at.index > 0 {
		out.text("\n")
	}
	if role == chat.RoleTool {
		role = chat.RoleUser
	}
	return out.token(imStart).text(role + "\n")
}

// open implements family.
func (f *im) open(out *chunks, at place) {
	header(out, at, chat.RoleAssistant).text(f.suffix)
}

// read implements family.
func (f *im) read(sampled []int32) (Parsed, error) {
	text, parsed, err := f.cut(f.begun(sampled), sampled)
	if err != nil || parsed.Ending == Truncated {
		return parsed, err
	}
	found := blocks(text, f.xml)
	if f.unframe != nil && found.parts != nil {
		found.parts = f.unframe(found.parts)
	}
	found.unparsed = append(found.unparsed, unterminated(text, callOpen, callClose)...)
	return parsed.with(found), nil
}

// begun gives what the prompt has begun the reply with, if the reply shows that it reasons and does not
// begin that way itself.
func (f *im) begun(sampled []int32) string {
	if !f.xml || !slices.Contains(sampled, f.id(thinkClose)) {
		return ""
	}
	prefix := append([]int32{f.id(thinkOpen)}, f.tokens.Encode("\n")...)
	if len(sampled) >= len(prefix) && slices.Equal(sampled[:len(prefix)], prefix) {
		return ""
	}
	return "<think>\n"
}

// blocks splits a reply into reasoning, text and calls. The text between them keeps its white space.
func blocks(text string, xml bool) reply {
	out := reply{text: text}
	if !strings.Contains(text, thinkOpen) && !strings.Contains(text, callOpen) {
		return out
	}
	out.parts = []chat.Part{}
	thoughts := finder{text: text, opening: thinkOpen, closing: thinkClose}
	calls := finder{text: text, opening: callOpen, closing: callClose}
	var raw []string
	for at := 0; ; {
		thought, thinks := thoughts.from(at)
		call, isCall := calls.from(at)
		isCall = isCall && (!thinks || call.begin < thought.begin)
		switch {
		case isCall:
			out.parts = appendPart(out.parts, text[at:call.begin], false)
			raw = append(raw, text[call.begin:call.end])
			at = call.end
		case thinks:
			out.parts = appendPart(out.parts, text[at:thought.begin], false)
			out.parts = appendPart(out.parts, thought.inner, true)
			at = thought.end
		default:
			out.parts = appendPart(out.parts, text[at:], false)
			out.calls, out.unparsed = readCalls(raw, xml)
			return out
		}
	}
}

// readCalls reads calls, tags included. Those in XML come after those in JSON, as the reference has it.
func readCalls(raw []string, xml bool) (calls []chat.ToolCall, unparsed []UnparsedCall) {
	var converted []chat.ToolCall
	for _, text := range raw {
		inner := strings.TrimSuffix(strings.TrimPrefix(text, callOpen), callClose)
		call, problem := jsonCall(inner)
		if problem == "" {
			calls = append(calls, call)
			continue
		}
		if xml && strings.Contains(inner, "<function=") {
			if call, problem = xmlCall(inner); problem == "" {
				converted = append(converted, call)
				continue
			}
		}
		unparsed = append(unparsed, UnparsedCall{Text: text, Problem: problem})
	}
	return append(calls, converted...), unparsed
}

// jsonCall reads {"name": ..., "arguments": {...}}. The arguments are written again, as the reference does.
func jsonCall(text string) (call chat.ToolCall, problem string) {
	value, err := pyjson.Parse(pyjson.Strip(text))
	if err != nil {
		return chat.ToolCall{}, "Invalid JSON: " + err.Error()
	}
	object, ok := value.(*pyjson.Object)
	if !ok {
		return chat.ToolCall{}, "Tool call is not a JSON object"
	}
	name, _ := object.Get("name")
	arguments, _ := object.Get("arguments")
	id, _ := object.Get("id")
	call.ID, _ = id.(string)
	if call.Name, ok = name.(string); !ok {
		return chat.ToolCall{}, "Missing or invalid 'name' field"
	}
	if _, ok := arguments.(*pyjson.Object); !ok {
		return chat.ToolCall{}, "Missing or invalid 'arguments' field"
	}
	call.Name, call.ID = pyjson.Text(call.Name), pyjson.Text(call.ID)
	call.Arguments = pyjson.JSON(arguments)
	return call, ""
}

// jsonCalls writes calls as JSON between tags, one a line.
func jsonCalls(calls []chat.ToolCall) (string, error) {
	lines := make([]string, len(calls))
	for i, call := range calls {
		arguments, err := pyjson.Parse(call.Arguments)
		if err != nil {
			return "", fmt.Errorf("writing call %d, of %q: %w: %w", i, call.Name, errArguments, err)
		}
		payload := &pyjson.Object{Fields: []pyjson.Field{{Name: "name", Value: call.Name}, {Name: "arguments", Value: arguments}}}
		lines[i] = callOpen + "\n" + pyjson.JSON(payload) + "\n" + callClose
	}
	return strings.Join(lines, "\n"), nil
}
