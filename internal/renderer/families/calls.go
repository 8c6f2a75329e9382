// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
)

// CallReader reads the calls of tools in the text of a reply, as one of the formats of this package does.
type CallReader struct {
	Name string
	// Read takes a reply apart. The text has no stop.
	Read func(text string) format.Reply
}

// CallReaders returns the readers of the dialects of calls that the formats of this package read, stricter dialects
// before more general ones.
func CallReaders() []CallReader {
	return []CallReader{
		{"HermesJSON", func(text string) format.Reply { return readTagged(text, nil) }},
		{"QwenXML", func(text string) format.Reply { return readTagged(text, toolcall.XML) }},
		{"GLM", func(text string) format.Reply { return readTagged(text, toolcall.Keyed) }},
		{"DeepSeek", readDeepseek},
		{"DSML", readDSML},
		{"Kimi", readKimi},
		{"Harmony", readHarmony},
	}
}

func readTagged(text string, other toolcall.Reader) format.Reply {
	found := blocks(text, other)
	found.Unparsed = append(found.Unparsed, format.Unterminated(text, toolcall.Open, toolcall.Close)...)
	return found
}

func readDeepseek(text string) format.Reply {
	found := format.Reply{Text: text}
	if section, ok := format.Find(text, 0, deepseekCallsOpen, deepseekCallsClose); ok {
		found.Calls, found.Unparsed = deepseekTags.Parse(section.Inner, deepseekCall)
	}
	found.Unparsed = append(found.Unparsed, unclosed(text, deepseekCallsOpen, deepseekCallsClose, deepseekCallOpen,
		deepseekCallClose)...)
	if len(found.Calls)+len(found.Unparsed) > 0 {
		found.Text = pyjson.Strip(withoutBlocks(text, deepseekCallsOpen, deepseekCallsClose, pyjson.StripRight))
	}
	found.Parts = format.SplitReasoning(found.Text)
	return found
}

func readKimi(text string) format.Reply {
	found := format.Reply{Text: text}
	if section, ok := kimiSection(text); ok {
		found.Text = text[:section.Begin]
		found.Calls, found.Unparsed = kimiTags.Parse(section.Inner, kimiCall)
	}
	found.Unparsed = append(found.Unparsed,
		unclosed(text, kimiCallsOpen, kimiCallsClose, kimiOtherOpen, kimiOtherClose, kimiCallOpen, kimiCallClose)...)
	found.Parts = format.SplitReasoning(found.Text)
	return found
}

// readHarmony reads the messages of a reply: reasoning, text for the user, calls.
func readHarmony(text string) format.Reply {
	found := format.Reply{Text: text}
	for _, m := range harmonyMessages(text) {
		if pyjson.Strip(m.content) != "" {
			addPart(&found, m)
		}
	}
	if strings.Count(text, "to="+functionsPrefix) > len(found.Calls)+len(found.Unparsed) {
		found.Unparsed = append(found.Unparsed, unreadHarmonyCall(text))
	}
	return found
}
