// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// The texts of the conversations with which a template is tried.
const (
	triedQuestion = "tried question"
	triedAnswer   = "tried answer"
	triedThought  = "tried thought"
	triedFunction = "tried_function"
	triedID       = "call12345" // Mistral's templates require nine characters.
)

var (
	triedTool = chat.Tool{Name: triedFunction, Description: "Does it.",
		Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}`)}
	triedCall = chat.ToolCall{ID: triedID, Name: triedFunction, Arguments: `{"city": "Rome", "days": 2}`}
)

// reasoningFields are the fields of a message from which templates take reasoning.
var reasoningFields = []string{"reasoning_content", "thinking", "reasoning"}

// reasoningTags are the tags between which models reason.
var reasoningTags = [][2]string{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"}, {"<thought>", "</thought>"}}

// learn learns the traits of the template by rendering made-up conversations.
func (r *Renderer) learn() error {
	question, err := r.question()
	if err != nil {
		return fmt.Errorf("trying the chat template with a message of the user: %w", err)
	}
	answer := chat.Message{Role: chat.RoleAssistant, Content: triedAnswer}
	if err := r.learnEnd(append(slices.Clip(question), answer)); err != nil {
		return err
	}
	r.learnReasoning(question)
	r.learnTools(question)
	return nil
}

// question returns the beginning of a conversation that the template accepts.
func (r *Renderer) question() ([]chat.Message, error) {
	asked := []chat.Message{{Role: chat.RoleUser, Content: triedQuestion}}
	_, err := r.write(renderer.Conversation{Messages: asked}, true)
	if err == nil {
		return asked, nil
	}
	led := append([]chat.Message{{Role: chat.RoleSystem, Content: "tried system"}}, asked...)
	if _, other := r.write(renderer.Conversation{Messages: led}, true); other == nil {
		return led, nil
	}
	return nil, err
}

// learnEnd finds the token that the template writes after an answer.
func (r *Renderer) learnEnd(answered []chat.Message) error {
	out, err := r.write(renderer.Conversation{Messages: answered}, false)
	if err != nil {
		return fmt.Errorf("trying the chat template with an answer: %w", err)
	}
	at := strings.LastIndex(out.text, triedAnswer)
	if at < 0 {
		return errors.New("trying the chat template: it does not write the text of an answer")
	}
	if name, ok := r.tokenAfter(out, at+len(triedAnswer)); ok {
		r.traits.Ends = []string{name}
		return nil
	}
	if name := r.config.Names[endOfText]; name != "" {
		r.traits.Ends = []string{name}
	}
	r.learnNext(answered, chat.Message{Role: chat.RoleUser, Content: triedQuestion})
	if len(r.traits.Ends) == 0 {
		return errors.New("trying the chat template: it writes no special token behind an answer, and the tokenizer's " +
			"configuration names no eos_token, so that nothing would end a reply")
	}
	return nil
}

// learnNext adds the token that the template writes after a reply only when another message follows.
func (r *Renderer) learnNext(replied []chat.Message, next chat.Message) {
	asked := renderer.Conversation{Messages: replied}
	before, err := r.write(asked, false)
	if err != nil {
		return
	}
	asked.Messages = append(slices.Clip(replied), next)
	out, err := r.write(asked, true)
	if err != nil || !strings.HasPrefix(out.text, before.text) {
		return
	}
	if name, ok := r.tokenAfter(out, len(before.text)); ok {
		if space, _, _ := strings.Cut(out.text[len(before.text):], name); strings.TrimSpace(space) == "" {
			r.addEnd(name)
			r.marks = true
		}
	}
}

func (r *Renderer) addEnd(name string) {
	if name != "" && !slices.Contains(r.traits.Ends, name) {
		r.traits.Ends = append(r.traits.Ends, name)
	}
}

// tokenAfter returns the first special token that the template wrote from a place on.
func (r *Renderer) tokenAfter(out written, from int) (name string, ok bool) {
	for _, token := range r.tokensOf(out) {
		if token.Begin >= from {
			return out.text[token.Begin:token.End], true
		}
	}
	return "", false
}

// tokensOf returns the places of the special tokens that the template wrote.
func (r *Renderer) tokensOf(out written) (places []renderer.Extent) {
	r.config.Tokens.AppendEncodeWhere(nil, out.text, func(start, end int) bool {
		if !out.fromTemplate(start, end) {
			return false
		}
		places = append(places, renderer.Extent{Begin: start, End: end})
		return true
	})
	return places
}

// learnReasoning finds the field from which the template takes reasoning, and the tags around the reasoning.
func (r *Renderer) learnReasoning(question []chat.Message) {
	for _, field := range reasoningFields {
		out, err := r.run(append(r.fields(question), assistant(fieldContent, triedAnswer, field, triedThought)), nil, false)
		if err != nil {
			continue
		}
		if at := strings.LastIndex(out.text, triedThought); at >= 0 {
			r.traits.ReasoningField = field
			r.traits.Reasoning = tagsAround(out.text, at)
			return
		}
	}
	// Templates without such a field split the text of a reply at the tag, or their prompts open or close a block.
	opened, err := r.write(renderer.Conversation{Messages: question}, true)
	for _, tags := range reasoningTags {
		if strings.Contains(r.config.Template, tags[1]) || err == nil && strings.Contains(opened.text, tags[0]) {
			r.traits.Reasoning = tags
			return
		}
	}
}

func tagsAround(text string, at int) [2]string {
	for _, tags := range reasoningTags {
		before, after := strings.LastIndex(text[:at], tags[0]), strings.Index(text[at:], tags[1])
		if before >= 0 && after >= 0 {
			return tags
		}
	}
	return [2]string{}
}

func assistant(namesAndValues ...any) *pyjson.Object {
	out := &pyjson.Object{}
	out.Set("role", chat.RoleAssistant)
	for i := 0; i < len(namesAndValues); i += 2 {
		out.Set(namesAndValues[i].(string), namesAndValues[i+1])
	}
	return out
}

// fields returns messages without reasoning as the template is given them.
func (r *Renderer) fields(messages []chat.Message) []any {
	out := make([]any, len(messages))
	for i, m := range messages {
		fields, err := r.message(m)
		if err != nil {
			panic(err) // The messages are question's.
		}
		out[i] = fields
	}
	return out
}

// learnTools finds whether the template declares tools, the dialect of its calls, and the token that ends a reply with
// calls. The dialect is the first one that reads exactly the call from the template's output for a call.
func (r *Renderer) learnTools(question []chat.Message) {
	asked := renderer.Conversation{Messages: question, Tools: []chat.Tool{triedTool}}
	opened, err := r.write(asked, true)
	if r.traits.DeclaresTools = err == nil && strings.Contains(opened.text, triedFunction); !r.traits.DeclaresTools {
		return
	}
	for _, id := range []string{triedID, "functions." + triedFunction + ":0"} { // Kimi's ids contain the name.
		call := triedCall
		call.ID = id
		if r.learnCalls(asked, call) {
			return
		}
	}
}

// learnCalls learns the dialect of calls, and reports whether it is known.
func (r *Renderer) learnCalls(asked renderer.Conversation, call chat.ToolCall) bool {
	closed, err := r.write(asked, false)
	if err != nil {
		return false
	}
	asked.Messages = append(slices.Clip(asked.Messages), chat.Message{Role: chat.RoleAssistant,
		Calls: []chat.ToolCall{call}})
	called, err := r.write(asked, false)
	if err != nil {
		return false
	}
	begin := commonPrefix(closed.text, called.text)
	end, name := r.lastEnd(called, begin)
	for _, reader := range families.CallReaders() {
		found := reader.Read(called.text[begin:end])
		if len(found.Unparsed) > 0 || len(found.Calls) != 1 || !isTried(found.Calls[0]) {
			continue
		}
		r.calls, r.traits.Calls = &reader, reader.Name
		if r.addEnd(name); name == "" {
			r.learnNext(asked.Messages, chat.Message{Role: chat.RoleTool, Content: "2", CallID: call.ID, Name: call.Name})
		}
		return true
	}
	return false
}

// lastEnd returns the place and the name of the token that ends a reply with a call: the token that ends an answer, or
// else the last special token of the text.
func (r *Renderer) lastEnd(out written, from int) (at int, name string) {
	at = len(out.text)
	for _, token := range r.tokensOf(out) {
		if token.End <= from {
			continue
		}
		at, name = token.Begin, out.text[token.Begin:token.End]
		if name == r.traits.Ends[0] {
			return at, name
		}
	}
	return at, name
}

func isTried(call chat.ToolCall) bool {
	want, _ := pyjson.Parse(triedCall.Arguments)
	got, err := pyjson.Parse(call.Arguments)
	return err == nil && call.Name == triedFunction && pyjson.JSON(got) == pyjson.JSON(want)
}

// commonPrefix returns the length in bytes of the common prefix of two texts.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
