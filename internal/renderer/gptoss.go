// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/tsdecl"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Tokens of gpt-oss, and the channels that its messages go to.
const (
	harmonyStart     = "<|start|>"
	harmonyEnd       = "<|end|>"
	harmonyMessage   = "<|message|>"
	harmonyChannel   = "<|channel|>"
	harmonyConstrain = "<|constrain|>"
	harmonyReturn    = "<|return|>"
	harmonyCall      = "<|call|>"

	channelAnalysis   = "analysis"
	channelCommentary = "commentary"
	channelFinal      = "final"

	functionsPrefix = "functions."
)

// roleHarmonySystem is the role of the format's own system messages. Those of a conversation become messages
// of the developer.
const roleHarmonySystem = "\x00system"

// gptOss is the format of gpt-oss, which its makers call harmony:
//
//	<|start|>user<|message|>2+2?<|end|><|start|>assistant<|channel|>analysis<|message|>two and two<|end|>
//	<|start|>assistant<|channel|>final<|message|>4<|return|>
//
// (without the line break). An answer ends in <|return|> when it is sampled and in <|end|> once it is history,
// so that turns do not extend each other; a call ends in <|call|> and stays as it was sampled.
type gptOss struct {
	profile
	// system message of the format's own; "" for none.
	system string
}

func newGptOss(effort string) builder {
	return func(tokens tokenizer.Tokenizer, options Options) (family, error) {
		v, err := newVocabulary(tokens, options.Match, harmonyStart, harmonyEnd, harmonyMessage, harmonyChannel, harmonyConstrain, harmonyReturn, harmonyCall)
		if err != nil {
			return nil, err
		}
		g := &gptOss{profile: profile{vocabulary: v, stop: Stop{Tokens: []int32{v.id(harmonyReturn), v.id(harmonyCall)}}, end: harmonyEnd}}
		if effort == "" {
			return g, nil
		}
		if _, err := time.Parse(time.DateOnly, options.Date); err != nil {
			return nil, errors.New("the format writes a date into every prompt, so the run has to fix one as year-month-day (Options.Date), " +
				"for prompts to stay the same over days and restarts")
		}
		g.system = "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: " + options.Date +
			"\n\nReasoning: " + effort +
			"\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message."
		return g, nil
	}
}

// arrange implements family: the tools stand in a message of the developer, below the system's text.
func (g *gptOss) arrange(conversation Conversation) ([]chat.Message, error) {
	var front []chat.Message
	if g.system != "" {
		front = append(front, chat.Message{Role: roleHarmonySystem, Content: g.system})
	}
	if conversation.Tools == nil {
		return slices.Concat(front, conversation.Messages), nil
	}
	system, rest, err := systemFirst(conversation.Messages)
	if err != nil {
		return nil, err
	}
	text := ""
	if system != "" {
		text = "# Instructions\n\n" + system
	}
	if len(conversation.Tools) > 0 {
		tools, err := eachTool(conversation.Tools, "\n\n", gptOssTool)
		if err != nil {
			return nil, err
		}
		front = append(front, chat.Message{Role: roleHarmonySystem, Content: "Calls to these tools must go to the commentary channel: 'functions'."})
		text = paragraphs(text, "# Tools\n\n## functions\n\nnamespace functions {\n\n"+tools+"\n\n} // namespace functions")
	}
	if text != "" {
		front = append(front, chat.Message{Role: "developer", Content: text})
	}
	return slices.Concat(front, rest), nil
}

func gptOssTool(t chat.Tool) (string, error) {
	parameters, err := schema(t)
	if err != nil {
		return "", err
	}
	return tsdecl.Type(t.Name, t.Description, object(parameters)), nil
}

// write implements family.
func (g *gptOss) write(out *chunks, at place) error {
	m := at.message()
	if m.Role == chat.RoleAssistant {
		out.token(harmonyStart).text(m.Role).body()
		g.assistant(out, m, at)
		return nil
	}
	text, err := plainText(m)
	if err != nil {
		return err
	}
	out.token(harmonyStart)
	switch m.Role {
	case chat.RoleTool:
		out.text(toolAuthor(m.Name) + " to=assistant").body().token(harmonyChannel).text(channelCommentary)
	case chat.RoleSystem:
		out.text("developer").body()
		text = "# Instructions\n\n" + text + "\n\n"
	case roleHarmonySystem:
		out.text(chat.RoleSystem).body()
	default:
		out.text(m.Role).body()
	}
	out.token(harmonyMessage).text(text).token(harmonyEnd)
	return nil
}

// toolAuthor is who a tool's result comes from.
func toolAuthor(name string) string {
	if name == "" {
		name = "unknown"
	}
	return functionsPrefix + strings.TrimPrefix(name, functionsPrefix)
}

func (g *gptOss) assistant(out *chunks, m chat.Message, at place) {
	thinking, text := thinkingOf(m.AllParts()), textOf(m.AllParts())
	if thinking != "" {
		out.token(harmonyChannel).text(channelAnalysis).token(harmonyMessage).text(thinking)
		out.token(harmonyEnd).token(harmonyStart).text(chat.RoleAssistant)
	}
	if len(m.Calls) == 0 {
		out.token(harmonyChannel).text(channelFinal).token(harmonyMessage).text(text)
		out.token(endOf(at))
		return
	}
	if text != "" {
		out.token(harmonyChannel).text(channelCommentary).token(harmonyMessage).text(text)
		out.token(harmonyEnd).token(harmonyStart).text(chat.RoleAssistant)
	}
	for i, call := range m.Calls {
		if i > 0 {
			out.token(harmonyStart).text(chat.RoleAssistant)
		}
		out.text(" to=" + functionsPrefix + call.Name).token(harmonyChannel).text(channelCommentary + " ").token(harmonyConstrain).text("json")
		out.token(harmonyMessage).text(call.Arguments).token(harmonyCall)
	}
}

// endOf is the token that ends an answer.
func endOf(at place) string {
	if at.isLast() {
		return harmonyReturn
	}
	return harmonyEnd
}

// open implements family.
func (g *gptOss) open(out *chunks, _ place) { out.token(harmonyStart).text(chat.RoleAssistant) }

// again implements family. The reference keeps earlier reasoning, so of what was sampled only the end of an
// answer is another once it is history.
func (g *gptOss) again(out *chunks, at place) bool {
	ids := at.message().Sampled
	last := len(ids) - 1
	switch {
	case last < 0 || !g.isStop(ids[last]):
		out.put(ids...).token(harmonyEnd)
	case ids[last] == g.id(harmonyReturn):
		out.put(ids[:last]...).token(endOf(at))
	default:
		out.put(ids...)
	}
	return true
}
