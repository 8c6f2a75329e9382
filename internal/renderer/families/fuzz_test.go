// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families_test

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// FuzzParse parses any ids with each renderer. The parsed message can be rendered again, by its sampled ids and by its
// text: a policy must not be able to end its own episode by its output.
func FuzzParse(f *testing.F) {
	names := families.Names()
	for i, text := range []string{
		"plain<|im_end|>", "<think>\nx\n</think>\n\ny<|im_end|>",
		"<think>a<tool_call>{\"name\": \"a\", \"arguments\": {\"t\": \"\\ud83d\"}}</tool_call><|im_end|>",
		"<tool_call>\n<function=f>\n<parameter=a>\n\"\\ud83d\"\n</parameter>\n</function>\n</tool_call><|im_end|>",
		"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>[1]<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
		"<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
		" to=functions.a<|channel|>commentary <|constrain|>json<|message|>3<|call|>", "a\n\nUser:",
		"t</think>x<tool_call>f<arg_key>k</arg_key><arg_value>\"\\ud83d\"</arg_value></tool_call><|observation|>",
		"t</think>x\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"k\" string=\"false\">" +
			"\"\\ud83d\"</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls><｜end▁of▁sentence｜>",
	} {
		for n := range names {
			f.Add(uint8(n+i*len(names)), []byte(text))
		}
	}
	renderers := make([]renderer.Renderer, len(names))
	tokens := make([]tokenizer.Tokenizer, len(names))
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		n := int(which) % len(names)
		if renderers[n] == nil {
			renderers[n], tokens[n] = asInARun(t, names[n])
		}
		sampled := tokens[n].AppendEncode(nil, string(text), tokenizer.Specials)
		for i := range text {
			// The fuzzer chooses these ids. The vocabulary does not have most of them.
			if text[i] == 0xFF && i+2 < len(text) {
				sampled = append(sampled, int32(text[i+1])<<10|int32(text[i+2])-1)
			}
		}
		parsed, err := renderers[n].Parse(sampled)
		if _, unknown := tokens[n].Decode(sampled); (err != nil) && unknown == nil {
			t.Fatalf("%s: Parse of ids that the vocabulary has: %v", names[n], err)
		}
		if err != nil {
			return
		}
		written := parsed.Message
		written.Sampled = nil
		for _, reply := range []chat.Message{parsed.Message, written} {
			messages := []chat.Message{{Role: chat.RoleUser, Content: "q"}, reply, {Role: chat.RoleUser, Content: "r"}}
			if _, err := renderers[n].Prompt(renderer.Conversation{Messages: messages}); err != nil {
				t.Fatalf("%s: rendering a parsed reply: %v", names[n], err)
			}
		}
	})
}
