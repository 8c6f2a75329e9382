// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// The tags of calls. A reply of DeepSeek-V4.1 ends with at most one block of calls.
const (
	dsmlCallsOpen   = "<" + dsml + " calls>"
	dsmlCallsClose  = "</" + dsml + " calls>"
	dsmlInvokeOpen  = "<" + dsml + ` invoke name="`
	dsmlInvokeClose = "</" + dsml + " invoke>"
	dsmlParamOpen   = "<" + dsml + ` parameter name="`
	dsmlParamClose  = "</" + dsml + " parameter>"

	invalidDSML = "Invalid DSML: "
)

// Read implements format.Family.
func (d *deepseek41) Read(sampled []int32) (renderer.Parsed, error) {
	prefix := ""
	if d.effort > 0 && closesReasoning(d.Vocabulary, sampled) {
		prefix = format.ThinkOpen
	}
	text, parsed, err := d.DecodeReply(prefix, sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	return format.WithReply(parsed, readDSML(text)), nil
}

// readDSML takes a reply apart.
func readDSML(text string) format.Reply {
	found := format.Reply{Text: text}
	if block, ok := format.Find(text, 0, dsmlCallsOpen, dsmlCallsClose); ok {
		found.Text = strings.TrimSuffix(text[:block.Begin], "\n\n")
		found.Calls, found.Unparsed = readInvokes(text[len(found.Text):block.End], block.Inner)
		if after := text[block.End:]; pyjson.Strip(after) != "" {
			found.Unparsed = append(found.Unparsed,
				renderer.UnparsedCall{Text: after, Problem: invalidDSML + "output after calls block"})
		}
	}
	switch open := format.Unterminated(found.Text, dsmlCallsOpen, dsmlCallsClose); {
	case open != nil:
		found.Unparsed = append(found.Unparsed, open...)
	case strings.Contains(found.Text, dsml):
		found.Unparsed = append(found.Unparsed,
			renderer.UnparsedCall{Text: found.Text, Problem: invalidDSML + "marker outside a calls block"})
	}
	found.Parts = format.SplitReasoning(found.Text)
	return found
}

// readInvokes reads the calls of a block, whose text with its tags is raw.
func readInvokes(raw, inner string) (calls []chat.ToolCall, unparsed []renderer.UnparsedCall) {
	outside := ""
	for {
		call, before, rest, ok := nextTag(inner, dsmlInvokeOpen, dsmlInvokeClose, "\">\n")
		outside += before
		if !ok {
			break
		}
		inner = rest
		arguments, problem := readParameters(call)
		if problem != "" {
			unparsed = append(unparsed, renderer.UnparsedCall{Text: call.raw, Problem: invalidDSML + problem})
			continue
		}
		calls = append(calls, chat.ToolCall{Name: call.name, Arguments: pyjson.JSON(arguments)})
	}
	if pyjson.Strip(outside) != "" || len(calls)+len(unparsed) == 0 {
		return nil, []renderer.UnparsedCall{{Text: raw, Problem: invalidDSML + "malformed invoke"}}
	}
	return calls, unparsed
}

// dsmlTag is a block with a name.
type dsmlTag struct {
	name string
	// ending is the end of the opening tag.
	ending string
	inner  string
	raw    string
}

// nextTag returns the first block of a text with the text around it, or the whole text as the text before it. Its
// opening tag ends with the first of the endings.
func nextTag(text, opening, closing string, endings ...string) (tag dsmlTag, before, rest string, ok bool) {
	begin := strings.Index(text, opening)
	if begin < 0 {
		return dsmlTag{}, text, "", false
	}
	named := text[begin+len(opening):]
	size := len(named)
	for _, ending := range endings {
		if at := strings.Index(named, ending); at >= 0 && at < size {
			size, tag.ending = at, ending
		}
	}
	inner, rest, ok := strings.Cut(named[size+len(tag.ending):], closing)
	if tag.ending == "" || !ok {
		return dsmlTag{}, text, "", false
	}
	tag.name, tag.inner, tag.raw = named[:size], inner, text[begin:len(text)-len(rest)]
	return tag, text[:begin], rest, true
}

// readParameters reads the arguments of a call.
func readParameters(call dsmlTag) (arguments *pyjson.Object, problem string) {
	if pyjson.Strip(call.name) == "" {
		return nil, "empty function name"
	}
	const text, value = `" string="true">`, `" string="false">`
	var parameters []dsmlTag
	outside := ""
	for rest := call.inner; ; {
		parameter, before, after, ok := nextTag(rest, dsmlParamOpen, dsmlParamClose, text, value)
		outside, rest = outside+before, after
		if !ok {
			break
		}
		parameters = append(parameters, parameter)
	}
	if pyjson.Strip(outside) != "" {
		return nil, "text outside parameters"
	}
	arguments = &pyjson.Object{}
	for _, p := range parameters {
		if pyjson.Strip(p.name) == "" {
			return nil, "empty parameter name"
		}
		if _, twice := arguments.Get(p.name); twice {
			return nil, "duplicate parameter '" + p.name + "'"
		}
		if p.ending == text {
			arguments.Set(p.name, p.inner)
			continue
		}
		read, err := pyjson.Parse(p.inner)
		if err != nil {
			return nil, err.Error()
		}
		arguments.Set(p.name, read)
	}
	return arguments, ""
}
