// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// The same call in both dialects.
const (
	jsonReply = "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [99, " +
		"99]}}\n</tool_call>"
	xmlReply = "<tool_call>\n<function=calculator>\n<parameter=operation>\nadd\n</parameter>\n<parameter=operands>\n[99, 99]\n</parameter>\n</function>\n</tool_call>"
)

var (
	calculator = chat.Tool{Name: "calculator", Description: "Calculates.",
		Parameters: []byte(`{"type":"object","properties":{"operation":{"type":"string"}}}`)}
	addition = chat.ToolCall{Name: "calculator", Arguments: `{"operation": "add", "operands": [99, 99]}`}
)

// sampledOf returns the ids of a reply with its stop.
func sampledOf(t *testing.T, name string, r renderer.Renderer, tokens tokenizer.Tokenizer, text string) []int32 {
	t.Helper()
	if strings.HasPrefix(name, "gpt_oss") {
		text = "<|channel|>final<|message|>" + text
	}
	stop := r.Stop()
	if len(stop.Strings) > 0 {
		return tokens.AppendEncode(nil, text+stop.Strings[0], tokenizer.Specials)
	}
	return append(tokens.AppendEncode(nil, text, tokenizer.Specials), stop.Tokens[0])
}

func textOf(t *testing.T, tokens tokenizer.Tokenizer, ids []int32) string {
	t.Helper()
	text, err := tokens.Decode(ids)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestFormatsThatDeclareTools compares the table of models with the formats.
func TestFormatsThatDeclareTools(t *testing.T) {
	for _, name := range families.Names() {
		r, _ := asInARun(t, name)
		_, err := r.Prompt(renderer.Conversation{Messages: []chat.Message{{Role: chat.RoleUser, Content: "99 + 99?"}},
			Tools: []chat.Tool{calculator}})
		if declares := !errors.Is(err, renderer.ErrTools); declares != models.DeclaresTools(name) || declares && err != nil {
			t.Errorf("%s: models.DeclaresTools = %v, and a prompt with a tool: %v", name, models.DeclaresTools(name), err)
		}
	}
}

// result is the result of a tool. GLM writes no line breaks around it.
var result = regexp.MustCompile("<tool_response>\n?198\n?</tool_response>")

// TestDialectInEachFormat declares a tool, reads a call and writes its result in both dialects, with the renderers of
// all families, including families without calls of their own.
func TestDialectInEachFormat(t *testing.T) {
	for _, name := range families.Names() {
		for dialect, reply := range map[string]string{"JSON": jsonReply, "XML": xmlReply} {
			t.Run(name+" "+dialect, func(t *testing.T) {
				own, tokens := asInARun(t, name)
				r := families.WithCalls(own, dialect == "XML")
				messages := []chat.Message{{Role: chat.RoleSystem, Content: "Be brief."},
					{Role: chat.RoleUser, Content: "99 + 99?"}}
				prompt, err := r.Prompt(renderer.Conversation{Messages: messages, Tools: []chat.Tool{calculator}})
				if err != nil {
					t.Fatal(err)
				}
				declared := map[string]string{"JSON": `{"name": <function-name>`,
					"XML": "<function=example_function_name>"}[dialect]
				for _, part := range []string{"Be brief.", "Calculates.", declared} {
					if text := textOf(t, tokens, prompt); !strings.Contains(text, part) {
						t.Errorf("the prompt lacks %q:\n%s", part, text)
					}
				}
				sampled := sampledOf(t, name, r, tokens, "I ask.\n"+reply)
				parsed, err := r.Parse(sampled)
				if err != nil || parsed.Ending != renderer.Stopped {
					t.Fatalf("Parse = %+v, %v, want a reply that stopped", parsed, err)
				}
				if diff := cmp.Diff([]chat.ToolCall{addition}, parsed.Message.Calls); diff != "" {
					t.Errorf("the calls (-want +got):\n%s", diff)
				}
				if got := strings.TrimSpace(parsed.Message.Content); got != "I ask." {
					t.Errorf("the text beside the call is %q", got)
				}
				written := parsed.Message
				written.Sampled = nil
				for _, reply := range []chat.Message{parsed.Message, written} {
					next, err := r.Prompt(renderer.Conversation{
						Messages: append(slices.Clone(messages), reply, chat.Message{Role: chat.RoleTool, Content: "198",
							Name: "calculator"}),
						Tools: []chat.Tool{calculator},
					})
					if err != nil {
						t.Fatal(err)
					}
					text := textOf(t, tokens, next)
					if !result.MatchString(text) || strings.Count(text, "[99, 99]") != 1 {
						t.Errorf("the next prompt lacks the call or its result:\n%s", text)
					}
				}
			})
		}
	}
}

// TestOwnDialectChangesNothing compares the prompts of formats with the prompts in their own dialect.
func TestOwnDialectChangesNothing(t *testing.T) {
	for name, xml := range map[string]bool{"qwen3": false, "qwen3_instruct": false, "qwen3_5": true} {
		t.Run(name, func(t *testing.T) {
			own, tokens := asInARun(t, name)
			r := families.WithCalls(own, xml)
			parsed, err := own.Parse(sampledOf(t, name, own, tokens, map[bool]string{false: jsonReply, true: xmlReply}[xml]))
			if err != nil {
				t.Fatal(err)
			}
			conversation := renderer.Conversation{
				Messages: []chat.Message{{Role: chat.RoleUser, Content: "99 + 99?"}, parsed.Message,
					{Role: chat.RoleTool, Content: "198"}},
				Tools: []chat.Tool{calculator},
			}
			want, err := own.Prompt(conversation)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Prompt(conversation)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(textOf(t, tokens, want), textOf(t, tokens, got)); diff != "" || !slices.Equal(want, got) {
				t.Errorf("the prompt differs (-own +dialect):\n%s", diff)
			}
		})
	}
}

// TestBrokenCallInADialect reads calls that are valid in neither dialect.
func TestBrokenCallInADialect(t *testing.T) {
	for _, name := range []string{"qwen3", "qwen3_5", "llama3", "kimi_k2", "role_colon"} {
		for broken, problem := range map[string]string{
			"<tool_call>\n<function=calculator>\n</tool_call>": "Malformed Qwen3.5 tool call XML",
			"<tool_call>\n{\"name\": \"calculator\", ":         "unterminated tool block",
		} {
			own, tokens := asInARun(t, name)
			r := families.WithCalls(own, true)
			parsed, err := r.Parse(sampledOf(t, name, r, tokens, broken))
			if err != nil || parsed.Ending != renderer.Malformed || !strings.Contains(parsed.Problem, problem) ||
				len(parsed.Message.Calls) != 0 {
				t.Errorf("%s: Parse(%q) = %+v, %v, want the problem %q", name, broken, parsed, err, problem)
			}
		}
	}
}

// TestExamplesWithCallsAsText checks that a message keeps its index if the tools are declared in a separate message.
func TestExamplesWithCallsAsText(t *testing.T) {
	r, tokens := asInARun(t, "role_colon")
	for _, xml := range []bool{false, true} {
		made := families.WithCalls(r, xml)
		got, err := made.Example(renderer.Conversation{
			Messages: []chat.Message{
				{Role: chat.RoleUser, Content: "99 + 99?"},
				{Role: chat.RoleAssistant, Calls: []chat.ToolCall{addition}},
			},
			Tools: []chat.Tool{calculator},
		}, false)
		if err != nil {
			t.Fatalf("Example: %v", err)
		}
		var indexes []int
		for _, w := range got.Written {
			indexes = append(indexes, w.Message)
		}
		if diff := cmp.Diff([]int{-1, 0, 1}, indexes); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		want := " " + jsonReply
		if xml {
			want = " " + xmlReply
		}
		last := got.Written[len(got.Written)-1].Output
		if text := textOf(t, tokens, got.IDs[last.Begin:last.End]); !strings.HasPrefix(text, want) {
			t.Errorf("the last message is %q, want it to begin with %q", text, want)
		}
	}
}
