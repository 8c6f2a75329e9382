// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// The tokens of DeepSeek-V4.1 in addition to the tokens of V3.1.
const (
	deepseekSystem = "<｜System｜>"
	// dsml marks the tags of calls. It is a token in the vocabularies that have it.
	dsml = "｜DSML｜"
)

var deepseek41Tokens = []string{deepseekBegin, deepseekEnd, deepseekSystem, deepseekUser, deepseekAssistant,
	format.ThinkOpen, format.ThinkClose}

// deepseek41 is the format of DeepSeek-V4.1, which has no line breaks between messages:
//
//	<｜begin▁of▁sentence｜><｜System｜>Reasoning Effort: 75 (...)⏎⏎Be brief.<｜User｜>2+2?<｜Assistant｜><think>Two and
//	two.</think>4<｜end▁of▁sentence｜>
//
// Consecutive messages of the user and results of tools are one turn of the user. Earlier reasoning is dropped at the
// user's next turn, which a result of a tool also is, unless tools are declared.
type deepseek41 struct {
	format.Profile
	deepseek41Variant
}

type deepseek41Variant struct {
	// effort is the number at the beginning of a prompt; 0 means that prompts tell the model not to reason.
	effort int
	// keeps means that the reasoning of earlier turns stays.
	keeps bool
}

func newDeepseek41(variant deepseek41Variant) builder {
	return withTokens(deepseek41Tokens, func(v *format.Vocabulary) format.Family {
		p := format.Profile{Vocabulary: v, Begin: []int32{v.ID(deepseekBegin)}, End: deepseekEnd,
			Stop: renderer.Stop{Tokens: []int32{v.ID(deepseekEnd)}}, History: format.Kept}
		return &deepseek41{Profile: p, deepseek41Variant: variant}
	})
}

// Arrange implements format.Family: the tools follow the system's text, and results of tools have the order of the
// calls.
func (d *deepseek41) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	messages, err := format.Declare(conversation, func(system string, tools []chat.Tool) ([]chat.Message, error) {
		first := chat.Message{Role: chat.RoleSystem, Content: system}
		if len(tools) == 0 {
			return slices.DeleteFunc([]chat.Message{first}, chat.Message.IsEmpty), nil
		}
		schemas, err := format.EachTool(tools, "\n", asUnicodeJSON)
		first.Name = declared + schemas
		return []chat.Message{first}, err
	})
	if err != nil {
		return nil, err
	}
	return sortUserTurns(messages), nil
}

// isUserTurn reports whether a message belongs to a turn of the user.
func isUserTurn(m chat.Message) bool { return m.Role == chat.RoleUser || m.Role == chat.RoleTool }

// sortUserTurns sorts the results of tools in each turn of the user into the order of the calls. A result without a
// known call counts as the result of the first call.
func sortUserTurns(messages []chat.Message) []chat.Message {
	messages = slices.Clone(messages)
	order := map[string]int{}
	for begin := 0; begin < len(messages); begin++ {
		if calls := messages[begin].Calls; len(calls) > 0 {
			clear(order)
			for i, call := range calls {
				order[call.ID] = i
			}
			delete(order, "")
		}
		if turn := userTurn(messages, begin); len(turn) > 0 {
			sortResultsStable(turn, order)
			begin += len(turn) - 1
		}
	}
	return messages
}

// userTurn returns the messages of the user's turn that begins at an index.
func userTurn(messages []chat.Message, begin int) []chat.Message {
	end := begin
	for end < len(messages) && isUserTurn(messages[end]) {
		end++
	}
	return messages[begin:end]
}

// sortResultsStable sorts the results of tools among the messages. Other messages keep their places.
func sortResultsStable(turn []chat.Message, order map[string]int) {
	var results []chat.Message
	for _, m := range turn {
		if m.Role == chat.RoleTool {
			results = append(results, m)
		}
	}
	slices.SortStableFunc(results, func(a, b chat.Message) int { return order[a.CallID] - order[b.CallID] })
	for i := range turn {
		if turn[i].Role == chat.RoleTool {
			turn[i], results = results[0], results[1:]
		}
	}
}

// dropsThrough returns the index of the last message that begins a new turn: assistant's messages before it lose their
// reasoning. It is -1 if none does.
func (d *deepseek41) dropsThrough(messages []chat.Message) int {
	if d.keeps || len(messages) > 0 && strings.HasPrefix(messages[0].Name, declared) {
		return -1
	}
	for i, m := range slices.Backward(messages) {
		if isUserTurn(m) || m.Role == chat.RoleSystem && i > 0 {
			return i
		}
	}
	return -1
}

// reasons reports whether the assistant's message at a place has its reasoning.
func (d *deepseek41) reasons(at format.Place) bool {
	return d.effort > 0 && at.Index > d.dropsThrough(at.Messages)
}

// effortLine returns the line with which a prompt begins, after the token of the system.
func (d *deepseek41) effortLine() string {
	return "Reasoning Effort: " + strconv.Itoa(d.effort) +
		" (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
}

// opening writes the text before the first message, unless it is the system's message.
func (d *deepseek41) opening(out *format.Writer, at format.Place) {
	if at.Index == 0 && d.effort > 0 {
		out.Token(deepseekSystem).Text(d.effortLine())
	}
}

// Write implements format.Family.
func (d *deepseek41) Write(out *format.Writer, at format.Place) error {
	switch m := at.Message(); {
	case m.Role == chat.RoleAssistant:
		d.assistant(out, m, at)
	case m.Role == chat.RoleSystem:
		return d.system(out, m, at)
	case !isUserTurn(m):
		return fmt.Errorf("the format knows the roles system, user, assistant and tool: %w", renderer.ErrUnsupported)
	case at.Index > 0 && isUserTurn(at.Messages[at.Index-1]):
		out.Body() // The first message has the text of the turn.
	default:
		d.opening(out, at)
		out.Token(deepseekUser).Body()
		return writeUserTurn(out, userTurn(at.Messages, at.Index))
	}
	return nil
}

// writeUserTurn writes the messages of a turn as one text.
func writeUserTurn(out *format.Writer, turn []chat.Message) error {
	for i, m := range turn {
		text, err := format.PlainText(m)
		if err != nil {
			return err
		}
		if i > 0 {
			out.Text("\n\n")
		}
		if m.Role == chat.RoleTool {
			out.Tag("<tool_result>").Text(text).Tag("</tool_result>")
		} else {
			out.Text(text)
		}
	}
	return nil
}

func (d *deepseek41) system(out *format.Writer, m chat.Message, at format.Place) error {
	text, err := format.PlainText(m)
	if err != nil {
		return err
	}
	out.Token(deepseekSystem).Body()
	if at.Index == 0 && d.effort > 0 {
		out.Head(d.effortLine())
	}
	out.Text(text)
	if schemas, ok := strings.CutPrefix(m.Name, declared); ok {
		tags := []string{dsml, format.ThinkOpen, format.ThinkClose}
		markup(out, deepseek41Tools, tags)
		out.Text(schemas)
		markup(out, deepseek41HowToCall, tags)
	}
	return nil
}

func (d *deepseek41) assistant(out *format.Writer, m chat.Message, at format.Place) {
	d.Open(out, at)
	out.Body()
	reasoning, answer := "", m.Content
	if m.IsStructured() {
		reasoning, answer = format.ThinkingOf(m.AllParts()), format.TextOf(m.AllParts())
	}
	if d.reasons(at) {
		out.Text(reasoning).Token(format.ThinkClose)
	}
	out.Text(answer)
	writeDSML(out, m.Calls)
	out.Token(deepseekEnd)
}

// Open implements format.Family. The header of the assistant follows a turn of the user, or a later system message.
func (d *deepseek41) Open(out *format.Writer, at format.Place) {
	d.opening(out, at)
	if at.Index == 0 {
		return
	}
	if before := at.Messages[at.Index-1]; !isUserTurn(before) && (before.Role != chat.RoleSystem || at.Index == 1) {
		return
	}
	out.Token(deepseekAssistant)
	if d.reasons(at) {
		out.Token(format.ThinkOpen)
	} else {
		out.Token(format.ThinkClose)
	}
}

// WriteSampled implements format.Family.
func (d *deepseek41) WriteSampled(out *format.Writer, at format.Place) bool {
	return (d.effort == 0 || d.reasons(at)) && d.Profile.WriteSampled(out, at)
}

// writeDSML writes calls.
func writeDSML(out *format.Writer, calls []chat.ToolCall) {
	if len(calls) == 0 {
		return
	}
	out.Text("\n\n<").Tag(dsml).Text(" calls>\n")
	for _, call := range calls {
		out.Text("<").Tag(dsml).Text(` invoke name="` + call.Name + "\">\n")
		for i, argument := range dsmlArguments(call.Arguments).Fields {
			if i > 0 {
				out.Text("\n")
			}
			_, isText := argument.Value.(string)
			out.Text("<").Tag(dsml).Text(` parameter name="` + pyjson.Text(argument.Name) + `" string="` +
				strconv.FormatBool(isText) + `">` + textOrJSON(argument.Value) + "</").Tag(dsml).Text(" parameter>")
		}
		out.Text("\n</").Tag(dsml).Text(" invoke>\n")
	}
	out.Text("</").Tag(dsml).Text(" calls>")
}

// dsmlArguments reads the arguments of a call: a JSON object, or a JSON string that contains one. Anything else
// becomes a single argument.
func dsmlArguments(text string) *pyjson.Object {
	value, err := pyjson.Parse(text)
	if inner, isText := value.(string); err == nil && isText {
		if again, err := pyjson.Parse(inner); err == nil {
			value = again
		}
	}
	if arguments, ok := value.(*pyjson.Object); ok {
		return arguments
	}
	return &pyjson.Object{Fields: []pyjson.Field{{Name: "arguments", Value: text}}}
}

// The texts around the tools in the declaration of tools, with which the models were trained.
const (
	deepseek41Tools = "\n\n## Tools\n\n" +
		"You have access to a set of tools to help answer the user's question. You can invoke " +
		"tools by writing a \"<｜DSML｜ calls>\" block like the following:\n\n<｜DSML｜ calls>\n" +
		"<｜DSML｜ invoke name=\"$TOOL_NAME\">\n<｜DSML｜ parameter name=\"$PARAMETER_NAME\" " +
		"string=\"true|false\">$PARAMETER_VALUE</｜DSML｜ parameter>\n...\n</｜DSML｜ invoke>\n" +
		"<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n...\n</｜DSML｜ invoke>\n</｜DSML｜ calls>\n\n" +
		"String parameters should be specified as is and set `string=\"true\"`. For all other " +
		"types (numbers, booleans, arrays, objects), pass the value in JSON format and set " +
		"`string=\"false\"`.\n\n" +
		"If thinking_mode is enabled (triggered by <think>), you MUST output your complete " +
		"reasoning inside <think>...</think> BEFORE any tool calls or final response.\n\n" +
		"Otherwise, output directly after </think> with tool calls or final response.\n\n" +
		"### Available Tool Schemas\n\n"
	deepseek41HowToCall = "\n\n" +
		"You MUST strictly follow the above defined tool name and parameter schemas to invoke " +
		"tool calls.\n"
)
