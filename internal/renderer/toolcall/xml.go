// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// WriteXML writes calls as <function=name> with a <parameter=name> for each argument. The function scalar writes a
// value that is neither text nor a container.
func WriteXML(calls []chat.ToolCall, scalar func(any) string) ([]string, error) {
	out := make([]string, len(calls))
	for i, call := range calls {
		arguments, err := Arguments(call)
		if err != nil {
			return nil, fmt.Errorf("writing call %d, of %q: %w", i, call.Name, err)
		}
		var text strings.Builder
		text.WriteString(Open + "\n<function=" + call.Name + ">\n")
		for _, argument := range arguments.Fields {
			text.WriteString("<parameter=" + pyjson.Text(argument.Name) + ">\n" + ArgumentText(argument.Value, scalar) +
				"\n</parameter>\n")
		}
		text.WriteString("</function>\n" + Close)
		out[i] = text.String()
	}
	return out, nil
}

// Arguments reads the arguments of a call. A call without arguments has an empty object.
func Arguments(call chat.ToolCall) (*pyjson.Object, error) {
	if call.Arguments == "" {
		return &pyjson.Object{}, nil
	}
	value, err := pyjson.Parse(call.Arguments)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", format.ErrArguments, err)
	}
	arguments, ok := value.(*pyjson.Object)
	if !ok {
		return nil, format.ErrArguments
	}
	return arguments, nil
}

// ArgumentText writes the value of an argument as the text of a parameter.
func ArgumentText(value any, scalar func(any) string) string {
	switch v := value.(type) {
	case string:
		return pyjson.Text(v)
	case []any, *pyjson.Object:
		return pyjson.JSON(v)
	default:
		return scalar(v)
	}
}

const malformedXML = "Malformed Qwen3.5 tool call XML"

// XML is the Reader of calls that WriteXML writes. For a text without <function=, it returns the problem of the JSON.
func XML(inner, problem string) (chat.ToolCall, string) {
	if !strings.Contains(inner, "<function=") {
		return chat.ToolCall{}, problem
	}
	return xmlCall(inner)
}

// xmlCall reads the text between the tags of a call. A value that is valid JSON is read as JSON, and any other value
// as text.
func xmlCall(inner string) (call chat.ToolCall, problem string) {
	rest, ok := strings.CutPrefix(pyjson.StripLeft(inner), "<function=")
	if !ok {
		return chat.ToolCall{}, malformedXML
	}
	name, rest, ok := tagName(rest)
	if !ok {
		return chat.ToolCall{}, malformedXML
	}
	body, ok := strings.CutSuffix(pyjson.StripRight(rest), "</function>")
	if !ok {
		return chat.ToolCall{}, malformedXML
	}
	if call.Name = pyjson.Strip(name); call.Name == "" {
		return chat.ToolCall{}, "Missing function name"
	}
	arguments, problem := xmlArguments(pyjson.Strip(body))
	if problem != "" {
		return chat.ToolCall{}, problem
	}
	call.Arguments = pyjson.JSON(arguments)
	return call, ""
}

func xmlArguments(body string) (arguments *pyjson.Object, problem string) {
	arguments = &pyjson.Object{}
	for {
		p, ok := nextParameter(body)
		if !ok {
			break
		}
		if pyjson.Strip(body[:p.begin]) != "" {
			return nil, "Unexpected non-parameter content inside <function> block"
		}
		name := pyjson.Strip(p.name)
		if name == "" {
			return nil, "Empty parameter name"
		}
		arguments.Set(name, argumentOf(pyjson.Strip(p.value)))
		body = body[p.end:]
	}
	if pyjson.Strip(body) != "" {
		return nil, "Unexpected trailing content inside <function> block"
	}
	return arguments, ""
}

func argumentOf(text string) any {
	if value, err := pyjson.Parse(text); err == nil {
		return value
	}
	return text
}

// parameter is a whole <parameter=name> within a body.
type parameter struct {
	begin, end  int
	name, value string
}

// nextParameter finds the first parameter that has a name and is closed.
func nextParameter(body string) (parameter, bool) {
	const opening, closing = "<parameter=", "</parameter>"
	for at := 0; ; {
		begin := strings.Index(body[at:], opening)
		if begin < 0 {
			return parameter{}, false
		}
		begin += at
		at = begin + len(opening)
		name, rest, ok := tagName(body[at:])
		if !ok {
			if !strings.HasPrefix(body[at:], ">") {
				// The line ends within the tag.
				_, next, _ := strings.Cut(body[at:], "\n")
				at = len(body) - len(next)
			}
			continue
		}
		value, _, ok := strings.Cut(rest, closing)
		if !ok {
			return parameter{}, false
		}
		end := len(body) - len(rest) + len(value) + len(closing)
		return parameter{begin: begin, end: end, name: name, value: value}, true
	}
}

// tagName splits text after the name of a tag, which must not be empty or contain a line break.
func tagName(text string) (name, rest string, ok bool) {
	end := strings.IndexAny(text, ">\n")
	if end <= 0 || text[end] != '>' {
		return "", "", false
	}
	return text[:end], text[end+1:], true
}

// howToCall is the end of the declaration of tools, as the models were trained with it.
const howToCall = "</tools>\n\n" +
	"If you choose to call a function ONLY reply in the following format with NO suffix:\n\n" +
	"<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n" +
	"<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple " +
	"lines\n</parameter>\n" +
	"</function>\n</tool_call>\n\n" +
	"<IMPORTANT>\nReminder:\n" +
	"- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within " +
	"<tool_call></tool_call> XML tags\n" +
	"- Required parameters MUST be specified\n" +
	"- You may provide optional reasoning for your function call in natural language BEFORE the function call, but " +
	"NOT after\n" +
	"- If there is no function call available, answer the question like normal with your current knowledge " +
	"and do not tell the user about function calls\n" +
	"</IMPORTANT>"

// DeclareXMLTools declares tools, each as a line or a block.
func DeclareXMLTools(tools []chat.Tool, write func(chat.Tool) (string, error)) (string, error) {
	if len(tools) == 0 {
		return "", nil
	}
	lines, err := format.EachTool(tools, "\n", write)
	return "# Tools\n\nYou have access to the following functions:\n\n<tools>\n" + lines + "\n" + howToCall, err
}

// DeclareXML adds the text of the system to the tools, for calls in XML.
func DeclareXML(system string, tools []chat.Tool) (string, error) {
	text, err := DeclareXMLTools(tools, format.AsJSON(format.Specification))
	return Paragraphs(text, system), err
}

// Paragraphs joins two texts with an empty line, unless one is empty.
func Paragraphs(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "\n\n" + second
}
