// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
	"github.com/tinker-operator/tinker-operator/internal/renderer/tsdecl"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// The tokens and channels of gpt-oss.
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

// roleHarmonySystem is the role of the format's own system messages. The system messages of a conversation become
// messages of the developer.
const roleHarmonySystem = "\x00system"

// gptOss is the format of gpt-oss, which is called harmony:
//
//	<|start|>user<|message|>2+2?<|end|><|start|>assistant<|channel|>analysis<|message|>two and two<|end|>
//	<|start|>assistant<|channel|>final<|message|>4<|return|>
//
// (without the line break). An answer ends in <|return|> when it is sampled and in <|end|> in history, so turns do not
// extend each other. A call ends in <|call|> and keeps its sampled ids.
type gptOss struct {
	format.Profile
	// system is the format's own system message, or "" if the format has no system message.
	system string
}

func newGptOss(effort string) builder {
	return func(tokens tokenizer.Tokenizer, options Options) (format.Family, error) {
		v, err := format.NewVocabulary(tokens, options.Match, harmonyStart, harmonyEnd, harmonyMessage, harmonyChannel,
			harmonyConstrain, harmonyReturn, harmonyCall)
		if err != nil {
			return nil, err
		}
		g := &gptOss{Profile: format.Profile{Vocabulary: v,
			Stop: renderer.Stop{Tokens: []int32{v.ID(harmonyReturn), v.ID(harmonyCall)}}, End: harmonyEnd}}
		if effort == "" {
			return g, nil
		}
		if _, err := time.Parse(time.DateOnly, options.Date); err != nil {
			return nil, errors.New("the format writes a date into every prompt, so the run has to fix one as year-month-day " +
				"(Options.Date), " +
				"for prompts to stay the same over days and restarts")
		}
		g.system = "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: " +
			options.Date +
			"\n\nReasoning: " + effort +
			"\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message."
		return g, nil
	}
}

// Arrange implements format.Family: the tools are in a message of the developer, below the system's text.
func (g *gptOss) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	messages, err := format.Declare(conversation, declareGptOss)
	if err != nil || g.system == "" {
		return messages, err
	}
	return slices.Concat([]chat.Message{{Role: roleHarmonySystem, Content: g.system}}, messages), nil
}

func declareGptOss(system string, declared []chat.Tool) (front []chat.Message, err error) {
	text := ""
	if system != "" {
		text = "# Instructions\n\n" + system
	}
	if len(declared) > 0 {
		tools, err := format.EachTool(declared, "\n\n", gptOssTool)
		if err != nil {
			return nil, err
		}
		front = append(front, chat.Message{Role: roleHarmonySystem,
			Content: "Calls to these tools must go to the commentary channel: 'functions'."})
		text = toolcall.Paragraphs(text, "# Tools\n\n## functions\n\nnamespace functions {\n\n"+tools+
			"\n\n} // namespace functions")
	}
	if text != "" {
		front = append(front, chat.Message{Role: "developer", Content: text})
	}
	return front, nil
}

func gptOssTool(t chat.Tool) (string, error) {
	parameters, err := format.Schema(t)
	if err != nil {
		return "", err
	}
	return tsdecl.Type(t.Name, t.Description, pyjson.ObjectOf(parameters)), nil
}

// Write implements format.Family.
func (g *gptOss) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	if m.Role == chat.RoleAssistant {
		out.Token(harmonyStart).Text(m.Role).Body()
		g.assistant(out, m, at)
		return nil
	}
	text, err := format.PlainText(m)
	if err != nil {
		return err
	}
	out.Token(harmonyStart)
	switch m.Role {
	case chat.RoleTool:
		out.Text(toolAuthor(m.Name) + " to=assistant").Body().Token(harmonyChannel).Text(channelCommentary)
	case chat.RoleSystem:
		out.Text("developer").Body()
		text = "# Instructions\n\n" + text + "\n\n"
	case roleHarmonySystem:
		out.Text(chat.RoleSystem).Body()
	default:
		out.Text(m.Role).Body()
	}
	out.Token(harmonyMessage).Text(text).Token(harmonyEnd)
	return nil
}

// toolAuthor returns the author of a tool's result.
func toolAuthor(name string) string {
	return functionsPrefix + strings.TrimPrefix(cmp.Or(name, "unknown"), functionsPrefix)
}

func (g *gptOss) assistant(out *format.Writer, m chat.Message, at format.Place) {
	thinking, text := format.ThinkingOf(m.AllParts()), format.TextOf(m.AllParts())
	if thinking != "" {
		out.Token(harmonyChannel).Text(channelAnalysis).Token(harmonyMessage).Text(thinking)
		out.Token(harmonyEnd).Token(harmonyStart).Text(chat.RoleAssistant)
	}
	if len(m.Calls) == 0 {
		out.Token(harmonyChannel).Text(channelFinal).Token(harmonyMessage).Text(text)
		out.Token(endOf(at))
		return
	}
	if text != "" {
		out.Token(harmonyChannel).Text(channelCommentary).Token(harmonyMessage).Text(text)
		out.Token(harmonyEnd).Token(harmonyStart).Text(chat.RoleAssistant)
	}
	for i, call := range m.Calls {
		if i > 0 {
			out.Token(harmonyStart).Text(chat.RoleAssistant)
		}
		out.Text(" to=" + functionsPrefix + call.Name).Token(harmonyChannel).Text(channelCommentary +
			" ").Token(harmonyConstrain).Text("json")
		out.Token(harmonyMessage).Text(call.Arguments).Token(harmonyCall)
	}
}

// endOf returns the token that ends an answer.
func endOf(at format.Place) string {
	if at.IsLast() {
		return harmonyReturn
	}
	return harmonyEnd
}

// Open implements format.Family.
func (g *gptOss) Open(out *format.Writer, _ format.Place) {
	out.Token(harmonyStart).Text(chat.RoleAssistant)
}

// WriteSampled implements format.Family. The reference keeps earlier reasoning, so history only
// replaces the end of an answer.
func (g *gptOss) WriteSampled(out *format.Writer, at format.Place) bool {
	ids := at.Message().Sampled
	last := len(ids) - 1
	switch {
	case last < 0 || !g.IsStop(ids[last]):
		out.Put(ids...).Token(harmonyEnd)
	case ids[last] == g.ID(harmonyReturn):
		out.Put(ids[:last]...).Token(endOf(at))
	default:
		out.Put(ids...)
	}
	return true
}
