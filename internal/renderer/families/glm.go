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

// The tokens of GLM-5.3.
const (
	glmSystem      = "<|system|>"
	glmUser        = "<|user|>"
	glmAssistant   = "<|assistant|>"
	glmObservation = "<|observation|>"
	glmEndOfText   = "<|endoftext|>"
)

var (
	glmBegin  = []string{"[gMASK]", "<sop>", glmSystem}
	glmStops  = []string{glmUser, glmObservation, glmEndOfText}
	glmTokens = slices.Concat(glmBegin, glmStops, []string{glmAssistant, format.ThinkOpen, format.ThinkClose})
	// glmHeaders are the tokens that begin messages, by their role.
	glmHeaders = map[string]string{chat.RoleSystem: glmSystem, chat.RoleUser: glmUser, chat.RoleTool: glmObservation}
	// glmTags are tokens in the vocabularies that have them, and text in others.
	glmTags = []string{toolcall.Open, toolcall.Close, toolcall.KeyOpen, toolcall.KeyClose, toolcall.ValueOpen,
		toolcall.ValueClose}
)

// glm is the format of GLM-5.3, which has no line breaks of its own:
//
//	[gMASK]<sop><|system|>Reasoning Effort: Max<|user|>2+2?<|assistant|><think>Two and two.</think>4<|user|>
//
// No token ends a message. The assistant ends its reply with the token that begins the next message: <|user|> after an
// answer, <|observation|> after calls. A sampled reply keeps this token if the next message begins with it. Otherwise,
// including after <|endoftext|>, the token of the next message replaces it.
type glm struct{ format.Profile }

func newGLM(effort string) builder {
	return withTokens(glmTokens, func(v *format.Vocabulary) format.Family {
		begin := append(idsOf(v, glmBegin), v.Tokens.Encode("Reasoning Effort: "+effort)...)
		return &glm{format.Profile{Vocabulary: v, Begin: begin, Stop: renderer.Stop{Tokens: idsOf(v, glmStops)},
			History: format.Kept}}
	})
}

func idsOf(v *format.Vocabulary, names []string) []int32 {
	ids := make([]int32, len(names))
	for i, name := range names {
		ids[i] = v.ID(name)
	}
	return ids
}

// Arrange implements format.Family: the tools are a system message before the others, and results of tools have the
// order of the calls.
func (g *glm) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	messages, err := format.Declare(conversation, func(system string, tools []chat.Tool) ([]chat.Message, error) {
		var first []chat.Message
		if len(tools) > 0 {
			lines, err := format.EachTool(tools, "\n", asUnicodeJSON)
			if err != nil {
				return nil, err
			}
			first = append(first, chat.Message{Role: chat.RoleSystem, Name: declared + lines})
		}
		if system != "" {
			first = append(first, chat.Message{Role: chat.RoleSystem, Content: system})
		}
		return first, nil
	})
	if err != nil {
		return nil, err
	}
	return inOrderOfCalls(messages), nil
}

// asUnicodeJSON writes the specification of a tool as JSON, with characters beyond ASCII as they are.
func asUnicodeJSON(t chat.Tool) (string, error) {
	spec, err := format.Specification(t)
	if err != nil {
		return "", err
	}
	return pyjson.Style{Unicode: true}.JSON(spec), nil
}

// inOrderOfCalls sorts consecutive results of tools into the order of the calls before them, if each call and each
// result has an ID of its own and each result answers one of the calls.
func inOrderOfCalls(messages []chat.Message) []chat.Message {
	messages = slices.Clone(messages)
	for begin := 1; begin < len(messages); begin++ {
		end := begin
		for end < len(messages) && messages[end].Role == chat.RoleTool {
			end++
		}
		if before := messages[begin-1]; end > begin && before.Role == chat.RoleAssistant {
			sortResults(messages[begin:end], before.Calls)
			begin = end
		}
	}
	return messages
}

// sortResults sorts the results of calls if their order is certain.
func sortResults(results []chat.Message, calls []chat.ToolCall) {
	order := map[string]int{}
	for i, call := range calls {
		order[call.ID] = i
	}
	answered := map[string]bool{}
	for _, result := range results {
		if _, ok := order[result.CallID]; !ok {
			return
		}
		answered[result.CallID] = true
	}
	if _, unnamed := order[""]; unnamed || len(order) < len(calls) || len(answered) < len(results) {
		return
	}
	slices.SortFunc(results, func(a, b chat.Message) int { return order[a.CallID] - order[b.CallID] })
}

// Write implements format.Family.
func (g *glm) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	if m.Role == chat.RoleAssistant {
		return g.assistant(out, at)
	}
	header, ok := glmHeaders[m.Role]
	if !ok {
		return fmt.Errorf("the format knows the roles system, user, assistant and tool: %w", renderer.ErrUnsupported)
	}
	if format.HasThinking(m.AllParts()) {
		return fmt.Errorf("only the assistant's messages may have reasoning: %w", renderer.ErrUnsupported)
	}
	if !g.isOpened(at) {
		out.Token(header)
	}
	out.Body()
	text := format.TextOf(m.AllParts())
	tools, declares := strings.CutPrefix(m.Name, declared)
	switch {
	case m.Role == chat.RoleTool:
		out.Tag(toolcall.ResultOpen).Text(text).Tag(toolcall.ResultClose)
	case declares:
		markup(out.Text(glmTools+tools), glmHowToCall, glmTags)
	default:
		out.Text(text)
	}
	return nil
}

// isOpened reports whether the message before has written the token that begins the message at a place. Consecutive
// results of tools share the token.
func (g *glm) isOpened(at format.Place) bool {
	if at.Index == 0 {
		return false
	}
	role, before := at.Message().Role, at.Messages[at.Index-1]
	switch before.Role {
	case chat.RoleTool:
		return role == chat.RoleTool
	case chat.RoleAssistant:
		return g.ending(before) == glmHeaders[role]
	default:
		return false
	}
}

// ending returns the token with which the assistant ends a message; "" if the message is a sampled reply without a
// stop.
func (g *glm) ending(m chat.Message) string {
	if m.Sampled != nil {
		for _, name := range glmStops {
			if last := len(m.Sampled) - 1; last >= 0 && m.Sampled[last] == g.ID(name) {
				return name
			}
		}
		return ""
	}
	if len(m.Calls) > 0 {
		return glmObservation
	}
	return glmUser
}

// opensNext reports whether the assistant's message at a place ends with the token that begins the next message.
func (g *glm) opensNext(at format.Place) bool {
	at.Index++
	return at.Index < len(at.Messages) && g.isOpened(at)
}

func (g *glm) assistant(out *format.Writer, at format.Place) error {
	m := at.Message()
	reasoning, text := glmReasoning(m)
	g.Open(out, at)
	out.Body().Text(reasoning).Token(format.ThinkClose).Text(pyjson.Strip(text))
	for i, call := range m.Calls {
		if err := writeKeyed(out, call); err != nil {
			return fmt.Errorf("writing call %d, of %q: %w", i, call.Name, err)
		}
	}
	if g.opensNext(at) {
		out.Token(g.ending(m))
	}
	return nil
}

// glmReasoning splits a message into reasoning and text. Of a text with several blocks of reasoning, the format keeps
// the first block and the text after the last.
func glmReasoning(m chat.Message) (reasoning, text string) {
	if m.IsStructured() {
		return format.ThinkingOf(m.AllParts()), format.TextOf(m.AllParts())
	}
	reasoning, _, ok := strings.Cut(m.Content, format.ThinkClose)
	if !ok {
		return "", m.Content
	}
	return afterLast(reasoning, format.ThinkOpen), afterLast(m.Content, format.ThinkClose)
}

// afterLast returns the part of a text after its last separator, or the text.
func afterLast(text, separator string) string {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[at+len(separator):]
	}
	return text
}

// writeKeyed writes a call.
func writeKeyed(out *format.Writer, call chat.ToolCall) error {
	arguments, err := toolcall.Arguments(call)
	if err != nil {
		return err
	}
	out.Tag(toolcall.Open).Text(call.Name)
	for _, argument := range arguments.Fields {
		out.Tag(toolcall.KeyOpen).Text(pyjson.Text(argument.Name)).Tag(toolcall.KeyClose)
		out.Tag(toolcall.ValueOpen).Text(textOrJSON(argument.Value)).Tag(toolcall.ValueClose)
	}
	out.Tag(toolcall.Close)
	return nil
}

// textOrJSON writes a text as it is, and any other value as JSON.
func textOrJSON(value any) string {
	if text, ok := value.(string); ok {
		return pyjson.Text(text)
	}
	return pyjson.Text(pyjson.Style{Unicode: true}.JSON(value))
}

// Close implements format.Closer: the token that the model ends its reply with.
func (g *glm) Close(out *format.Writer, at format.Place) {
	if m := at.Message(); m.Role == chat.RoleAssistant {
		out.Token(g.ending(m))
	}
}

// Open implements format.Family.
func (g *glm) Open(out *format.Writer, _ format.Place) {
	out.Token(glmAssistant).Token(format.ThinkOpen)
}

// WriteSampled implements format.Family.
func (g *glm) WriteSampled(out *format.Writer, at format.Place) bool {
	m := at.Message()
	ids := m.Sampled
	if g.ending(m) != "" && !g.opensNext(at) {
		ids = ids[:len(ids)-1]
	}
	out.Put(ids...)
	return true
}

// Read implements format.Family.
func (g *glm) Read(sampled []int32) (renderer.Parsed, error) {
	prefix := ""
	if closesReasoning(g.Vocabulary, sampled) {
		prefix = format.ThinkOpen
	}
	text, parsed, err := g.DecodeReply(prefix, sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	if parsed.Ending == renderer.Stopped && slices.Contains(sampled, g.ID(glmEndOfText)) {
		parsed.Ending = renderer.Ended
	}
	return format.WithReply(parsed, blocks(text, toolcall.Keyed)), nil
}

// markup writes text of the format, in which tags are tokens of the vocabularies that have them.
func markup(out *format.Writer, text string, tags []string) {
	for {
		begin, found := len(text), ""
		for _, tag := range tags {
			if at := strings.Index(text, tag); at >= 0 && at < begin {
				begin, found = at, tag
			}
		}
		out.Text(text[:begin])
		if found == "" {
			return
		}
		out.Tag(found)
		text = text[begin+len(found):]
	}
}

// The texts around the tools in the declaration of tools, with which the models were trained.
const (
	glmTools = "\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
	glmHowToCall = "\n</tools>\n\n" +
		"For each function call, output the function name and arguments within the following XML format:\n" +
		"<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>" +
		"<arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>...</tool_call>"
)
