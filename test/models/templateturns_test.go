// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models && templates

package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/templated"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// turnsFile records, for each template, after which replies the next prompt continues the sampled tokens.
const turnsFile = "testdata/turns.txt"

const (
	turnQuestion, turnThought, turnAnswer = "What is 2+2?", "Two and two.", "It is 4."
	turnCallID                            = "call12345" // Mistral's templates require nine characters.
)

var turnTool = chat.Tool{Name: "Item", Description: "Finds it.", Parameters: json.RawMessage(
	`{"type": "object", "properties": {"a": {"type": "integer", "description": "A number."}}, "required": ["a"]}`)}

// scene is a reply, and the message that follows it.
type scene struct {
	name         string
	reply, after chat.Message
	tools        []chat.Tool
}

var scenes = []scene{
	{"answer", chat.Message{Role: chat.RoleAssistant, Content: turnAnswer},
		chat.Message{Role: chat.RoleUser, Content: "Sure?"}, nil},
	{"reasoning", chat.Message{Role: chat.RoleAssistant, Thinking: turnThought, Content: turnAnswer},
		chat.Message{Role: chat.RoleUser, Content: "Sure?"}, nil},
	{"call", chat.Message{Role: chat.RoleAssistant, Calls: []chat.ToolCall{
		{ID: turnCallID, Name: turnTool.Name, Arguments: `{"a": 2}`}}},
		chat.Message{Role: chat.RoleTool, Content: "4", Name: turnTool.Name, CallID: turnCallID}, []chat.Tool{turnTool}},
}

// spaced has the templates that write a mark behind a reply, and white space before the mark, only once a message
// follows. A reply that was sampled with the mark alone then differs from their text.
var spaced = map[string]bool{"llama/Apriel-1.6-15b-Thinker-fixed.jinja": true}

// turnNames are the special tokens that templates call by their purpose.
var turnNames = map[string]string{"bos_token": "<s>", "eos_token": "</s>"}

// specialTokens matches the texts of templates that are special tokens of some model. taggedTokens are added tokens
// that are not special.
var (
	specialTokens = regexp.MustCompile(
		`<\|[^<>|\s'"{}]+\|?>|<[^<>|\s'"{}]+\|>|<｜[^<>\s'"{}]+｜>|<\w+_of_\w+>|\[/?[A-Z]{3}[A-Z_]*\]|` +
			`<s>|</s>|<sop>|<sep>|</?(?:assistant|user|system)>`)
	taggedTokens = regexp.MustCompile(`</?(think|tool_call|tool_response|seed:think|thought)>`)
)

// merged is the id of "It". Replies are sampled as single bytes, which a tokenizer would not write: only ids that were
// sampled continue.
const merged = 256

// turnTokens returns a tokenizer of bytes, and of "It", with the special tokens of a template.
func turnTokens(t *testing.T, source string) tokenizer.Tokenizer {
	t.Helper()
	special := slices.Compact(slices.Sorted(slices.Values(append(specialTokens.FindAllString(source, -1), "<s>", "</s>"))))
	tagged := slices.Compact(slices.Sorted(slices.Values(taggedTokens.FindAllString(source, -1))))
	type object = map[string]any
	vocabulary, next := object{}, rune(256)
	for b := range 256 {
		letter := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad { // These have other letters in the byte-level alphabet.
			letter = next
			next++
		}
		vocabulary[string(letter)] = b
	}
	vocabulary["It"] = merged
	var added []object
	for _, name := range append(slices.Clone(special), tagged...) {
		added = append(added, object{"id": merged + 1 + len(added), "content": name, "single_word": false, "lstrip": false,
			"rstrip": false, "normalized": false, "special": slices.Contains(special, name)})
	}
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	file, err := json.Marshal(object{"version": "1.0", "added_tokens": added, "pre_tokenizer": level, "decoder": level,
		"model": object{"type": "BPE", "vocab": vocabulary, "merges": []string{"I t"}}})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// fieldsOf returns a message as transformers gives it to a template.
func fieldsOf(m chat.Message, traits templated.Traits) map[string]any {
	content := m.Content
	fields := map[string]any{"role": m.Role}
	switch {
	case m.Thinking == "":
	case traits.ReasoningField != "":
		fields[traits.ReasoningField] = m.Thinking
	default:
		content = traits.Reasoning[0] + "\n" + m.Thinking + "\n" + traits.Reasoning[1] + "\n\n" + content
	}
	fields["content"] = content
	var calls []any
	for _, call := range m.Calls {
		calls = append(calls, map[string]any{"id": call.ID, "type": "function",
			"function": map[string]any{"name": call.Name, "arguments": json.RawMessage(call.Arguments)}})
	}
	if calls != nil {
		fields["tool_calls"] = calls
	}
	if m.CallID != "" {
		fields["tool_call_id"] = m.CallID
	}
	if m.Name != "" {
		fields["name"] = m.Name
	}
	return fields
}

// turn is a scene that a template is asked to write: before the reply, after it, and after the next message.
type turn struct {
	template string
	scene    scene
	answers  []templateAnswer
}

// questions are the three renderings of the turn.
func (u *turn) questions(t *testing.T, source string, traits templated.Traits) []templateQuestion {
	t.Helper()
	var tools any
	for _, tool := range u.scene.tools {
		tools = []any{map[string]any{"type": "function", "function": map[string]any{"name": tool.Name,
			"description": tool.Description, "parameters": tool.Parameters}}}
	}
	messages := []any{fieldsOf(chat.Message{Role: chat.RoleUser, Content: turnQuestion}, traits),
		fieldsOf(u.scene.reply, traits), fieldsOf(u.scene.after, traits)}
	var out []templateQuestion
	for i, opens := range []bool{true, false, true} {
		variables := map[string]any{"messages": messages[:i+1], "tools": tools, "documents": nil,
			"add_generation_prompt": opens}
		for name, token := range turnNames {
			variables[name] = token
		}
		text, err := json.Marshal(variables)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, templateQuestion{u.template + ": " + u.scene.name, source, string(text)})
	}
	return out
}

// sampled returns the reply as the template writes it behind its prompt, with the stop.
func (u *turn) sampled(tokens tokenizer.Tokenizer, ends []string) (ids []int32) {
	opened, replied := *u.answers[0].Text, *u.answers[1].Text
	at := 0 // The prompt may open reasoning in another way than the template writes a reply without reasoning.
	for at < min(len(opened), len(replied)) && opened[at] == replied[at] {
		at++
	}
	if i := strings.LastIndexByte(replied[:at], '<'); i >= 0 && !strings.Contains(replied[i:at], ">") {
		at = i // not within a tag
	}
	reply, stop, place := replied[at:], "", -1
	for _, end := range ends {
		if i := strings.Index(reply, end); i >= 0 && (place < 0 || i < place) {
			stop, place = end, i
		}
	}
	if place >= 0 {
		reply = reply[:place] + stop
	}
	for _, id := range tokens.AppendEncode(nil, reply, tokenizer.Specials) {
		if id == merged {
			ids = append(ids, 'I', 't')
		} else {
			ids = append(ids, id)
		}
	}
	return ids
}

// outcome plays the turn, and reports whether the next prompt begins with the last one and the sampled tokens.
func (u *turn) outcome(r *templated.Renderer, tokens tokenizer.Tokenizer) (continues bool, err error) {
	conversation := renderer.Conversation{Tools: u.scene.tools,
		Messages: []chat.Message{{Role: chat.RoleUser, Content: turnQuestion}}}
	before, err := r.Prompt(conversation)
	if err != nil {
		return false, err
	}
	sampled := u.sampled(tokens, r.Traits().Ends)
	parsed, err := r.Parse(sampled)
	if err != nil {
		return false, err
	}
	if len(parsed.Message.Calls) != len(u.scene.reply.Calls) {
		return false, fmt.Errorf("reading the reply: it has %d calls", len(parsed.Message.Calls))
	}
	after := u.scene.after
	for _, call := range parsed.Message.Calls {
		after.CallID = call.ID
	}
	conversation.Messages = append(conversation.Messages, parsed.Message, after)
	next, err := r.Prompt(conversation)
	if err != nil {
		return false, err
	}
	want := slices.Concat(before, sampled)
	return len(next) > len(want) && slices.Equal(next[:len(want)], want), nil
}

// opensReasoning reports whether the prompt opens reasoning that the template does not close in the reply. A reply
// without reasoning cannot follow such a prompt.
func (u *turn) opensReasoning(traits templated.Traits) bool {
	opened, replied := *u.answers[0].Text, *u.answers[1].Text
	return traits.Reasoning[0] != "" && strings.HasSuffix(strings.TrimSpace(opened), traits.Reasoning[0]) &&
		strings.Count(replied, traits.Reasoning[1]) == strings.Count(opened, traits.Reasoning[1])
}

// say describes the outcome of a turn. broken says why the outcome contradicts jinja2's text; it is empty if not.
func (u *turn) say(r *templated.Renderer, tokens tokenizer.Tokenizer) (said, broken string) {
	traits := r.Traits()
	switch {
	case u.scene.reply.Thinking != "" && traits.ReasoningField == "" && traits.Reasoning[0] == "":
		return "no reasoning", ""
	case u.scene.reply.Thinking != "" && traits.Reasoning[0] == "":
		return "reasoning between unknown tags, which stays text", ""
	case u.scene.tools != nil && !traits.DeclaresTools:
		return "no tools", ""
	case u.scene.tools != nil && traits.Calls == "":
		return "an unknown dialect", ""
	case slices.ContainsFunc(u.answers, func(a templateAnswer) bool { return a.Text == nil }):
		return "refused", ""
	case u.opensReasoning(traits):
		return "the prompt opens reasoning", ""
	}
	continues, err := u.outcome(r, tokens)
	extends := strings.HasPrefix(*u.answers[2].Text, *u.answers[1].Text)
	switch {
	case err != nil:
		return "fails", err.Error()
	case continues && !extends:
		return "continues", "the template writes the reply in another way once a message follows"
	case continues:
		return "continues", ""
	case extends && !spaced[u.template]:
		return "a new segment", "the template writes the reply as before once a message follows"
	}
	return "a new segment", ""
}

// TestTurnsOfTemplates plays a reply of each kind by the template of each model. The next prompt must continue the
// sampled tokens if and only if jinja2 writes the reply as before. The record says after which replies it does.
func TestTurnsOfTemplates(t *testing.T) {
	all := templates(t)
	made, unusable := map[string]*templated.Renderer{}, map[string]string{}
	tokens := map[string]tokenizer.Tokenizer{}
	var turns []*turn
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tokens[name] = turnTokens(t, all[name])
		r, err := templated.New(templated.Config{Template: all[name], Tokens: tokens[name], Names: turnNames,
			Date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			unusable[name] = err.Error()
			continue
		}
		made[name] = r
		for _, s := range scenes {
			turns = append(turns, &turn{template: name, scene: s})
		}
	}
	asked := 0
	askProgram(t, []string{"templates.py"}, func(yield func(templateQuestion) bool) {
		for _, u := range turns {
			for _, q := range u.questions(t, all[u.template], made[u.template].Traits()) {
				if !yield(q) {
					return
				}
			}
		}
	}, func(_ templateQuestion, a templateAnswer) {
		u := turns[asked/3]
		u.answers = append(u.answers, a)
		asked++
	})
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(unusable)) {
		t.Logf("%s: %s", name, unusable[name])
		lines = append(lines, name+": unusable")
	}
	for _, u := range turns {
		said, broken := u.say(made[u.template], tokens[u.template])
		if broken != "" {
			t.Errorf("%s after %s: %s: %s", u.template, u.scene.name, said, broken)
		}
		lines = append(lines, fmt.Sprintf("%s after %s: %s", u.template, u.scene.name, said))
	}
	text := strings.Join(lines, "\n") + "\n"
	if os.Getenv("MODELS_RECORD") != "" {
		write(t, turnsFile, []byte(text))
		return
	}
	before, err := os.ReadFile(turnsFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(text, "\n")); d != "" {
		t.Errorf("turns that continue (-recorded +got):\n%s", d)
	}
}
