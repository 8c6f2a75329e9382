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
)

// Qwen and Nemotron, which write messages between <|im_start|> and <|im_end|>, share these tags.
const (
	imStart = "<|im_start|>"
	imEnd   = "<|im_end|>"

	callOpen    = "<tool_call>"
	callClose   = "</tool_call>"
	resultOpen  = "<tool_response>"
	resultClose = "</tool_response>"

	emptyBlock = "<think>\n\n</think>\n\n"
)

// qwenTokens are the tokens that these families need.
var qwenTokens = []string{imStart, imEnd, format.ThinkOpen, format.ThinkClose, callOpen, callClose, resultOpen, resultClose}

// chatML has what these families share. Their format is known as ChatML.
type chatML struct {
	format.Profile
	// suffix follows the assistant's header in a prompt.
	suffix string
	// declare writes the system's text and the tools as one message.
	declare func(system string, tools []chat.Tool) (string, error)
	// unframe removes the format's own white space from the parts of a reply. It is nil if the format has no such white space.
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
	if conversation.Tools == nil {
		return conversation.Messages, nil
	}
	system, rest, err := format.SplitSystem(conversation.Messages)
	if err != nil {
		return nil, err
	}
	text, err := f.declare(system, conversation.Tools)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]chat.Message{{Role: chat.RoleSystem, Content: text}}, rest), nil
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
	found := blocks(text, f.xml)
	if f.unframe != nil && found.Parts != nil {
		found.Parts = f.unframe(found.Parts)
	}
	found.Unparsed = append(found.Unparsed, format.Unterminated(text, callOpen, callClose)...)
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

// blocks splits a reply into reasoning, text and calls. The text between them keeps its white space.
func blocks(text string, xml bool) format.Reply {
	out := format.Reply{Text: text}
	if !strings.Contains(text, format.ThinkOpen) && !strings.Contains(text, callOpen) {
		return out
	}
	out.Parts = []chat.Part{}
	thoughts := format.Finder{Text: text, Opening: format.ThinkOpen, Closing: format.ThinkClose}
	calls := format.Finder{Text: text, Opening: callOpen, Closing: callClose}
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
			out.Calls, out.Unparsed = readCalls(raw, xml)
			return out
		}
	}
}

// readCalls reads calls, including their tags. It returns calls in JSON before those in XML, as the reference does.
func readCalls(raw []string, xml bool) (calls []chat.ToolCall, unparsed []renderer.UnparsedCall) {
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
		unparsed = append(unparsed, renderer.UnparsedCall{Text: text, Problem: problem})
	}
	return append(calls, converted...), unparsed
}

// jsonCall reads {"name": ..., "arguments": {...}}. It writes the arguments again, as the reference does.
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
			return "", fmt.Errorf("writing call %d, of %q: %w: %w", i, call.Name, format.ErrArguments, err)
		}
		payload := &pyjson.Object{Fields: []pyjson.Field{{Name: "name", Value: call.Name}, {Name: "arguments", Value: arguments}}}
		lines[i] = callOpen + "\n" + pyjson.JSON(payload) + "\n" + callClose
	}
	return strings.Join(lines, "\n"), nil
}
