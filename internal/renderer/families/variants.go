// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package families has the formats of the model families and builds their renderers by name. A family is one file or
// a few, and its variants are entries of the table in variants.go.
package families

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Options are the options of a renderer.
type Options struct {
	// Date is written into prompts by gpt_oss, as year-month-day. A run sets it once.
	Date string
	// Begin and End are the tokens that begin and end a model's texts: bos_token and eos_token of its
	// tokenizer_config.json. Only role_colon and role_colon_end use them; "" means that there is no such token.
	Begin, End string
	// Match selects how the text of messages is read. With the zero value, which runs always use, names of special tokens
	// in messages are text.
	Match tokenizer.Match
}

// builder builds a format for a tokenizer.
type builder func(tokens tokenizer.Tokenizer, options Options) (format.Family, error)

// withTokens returns the builder of a format that needs only these tokens of a tokenizer.
func withTokens(names []string, build func(*format.Vocabulary) format.Family) builder {
	return func(tokens tokenizer.Tokenizer, options Options) (format.Family, error) {
		v, err := format.NewVocabulary(tokens, options.Match, names...)
		if err != nil {
			return nil, err
		}
		return build(v), nil
	}
}

// The system message of Qwen3.8 contains one of these sentences.
const (
	effortHigh = "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, " +
		"consider plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer."
	effortLow = "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the " +
		"conclusion " +
		"without unnecessary elaboration."
)

// variants are the renderers by name. Their histories say which sampled ids stay in the next prompt:
//
//   - Kept is for formats that write a reply as it was sampled, and for formats that preserve reasoning. The reference
//     writes a turn without reasoning differently from the sampled turn (with an empty block in other tokens, or
//     none); here its ids stay, so that each turn extends the last.
//   - ReasoningDropped is for Qwen3 and Qwen3-VL. They open no block in the prompt, so a reply without reasoning stays
//     in history as it was sampled. A reply with reasoning loses it at the user's next message. Within a turn, between
//     calls of tools, the models' own templates keep the reasoning (the reference drops it), so it stays.
//   - CurrentTurn is for Qwen3.5, Nemotron and Kimi. They open a block in the prompt that history closes or leaves out,
//     so only the replies of the current turn stay.
//   - Rewritten is for qwen3_disable_thinking and deepseekv3_thinking, which always change the text before the reply,
//     and for gpt_oss, which changes the token that ended an answer; the rest of the answer stays (see
//     gptOss.WriteSampled).
//
// GLM-5.3 and DeepSeek-V4.1 have rules of their own: see glm and deepseek41.
var variants = map[string]builder{
	"role_colon":     newRoleColon,
	"role_colon_end": newRoleColonEnd,
	"llama3":         newLlama3,

	"qwen3":               newQwen3(qwen3Variant{framed: true, strips: true, history: format.ReasoningDropped}),
	"qwen3+keep_thinking": newQwen3(qwen3Variant{framed: true, history: format.Kept}),
	"qwen3_disable_thinking": newQwen3(qwen3Variant{framed: true, strips: true, noThinking: true, suffix: emptyBlock,
		history: format.Rewritten}),
	"qwen3_instruct":    newQwen3(qwen3Variant{strips: true, history: format.Kept}),
	"qwen3_vl":          newQwen3VL(qwen3VLVariant{framed: true}),
	"qwen3_vl_instruct": newQwen3VL(qwen3VLVariant{}),

	"qwen3_5": newQwen35(qwen35Variant{scalar: pyjson.Str, history: format.CurrentTurn}),
	"qwen3_5_disable_thinking": newQwen35(qwen35Variant{scalar: pyjson.Str, noThinking: true,
		history: format.CurrentTurn}),
	"qwen3_5_preserve_thinking": newQwen35(qwen35Variant{scalar: pyjson.Str, keeps: true, history: format.Kept}),

	"qwen3_8_xhigh_reasoning": newQwen35(qwen35Variant{scalar: pyjson.JSON, keeps: true, framed: true, effort: effortHigh,
		history: format.Kept}),
	"qwen3_8_medium_reasoning": newQwen35(qwen35Variant{scalar: pyjson.JSON, keeps: true, framed: true,
		history: format.Kept}),
	"qwen3_8_low_reasoning": newQwen35(qwen35Variant{scalar: pyjson.JSON, keeps: true, framed: true, effort: effortLow,
		history: format.Kept}),
	"qwen3_8_disable_thinking": newQwen35(qwen35Variant{scalar: pyjson.JSON, keeps: true, framed: true, noThinking: true,
		history: format.Kept}),

	"deepseekv3":                        newDeepseek(deepseekVariant{history: format.Kept}),
	"deepseekv3_disable_thinking":       newDeepseek(deepseekVariant{history: format.Kept}),
	"deepseekv3_thinking":               newDeepseek(deepseekVariant{thinks: true, history: format.Rewritten}),
	"deepseekv3_thinking+keep_thinking": newDeepseek(deepseekVariant{thinks: true, keeps: true, history: format.Kept}),

	"deepseekv4_1":                   newDeepseek41(deepseek41Variant{effort: 75}),
	"deepseekv4_1_low_reasoning":     newDeepseek41(deepseek41Variant{effort: 50}),
	"deepseekv4_1_max_reasoning":     newDeepseek41(deepseek41Variant{effort: 100}),
	"deepseekv4_1_disable_thinking":  newDeepseek41(deepseek41Variant{}),
	"deepseekv4_1_preserve_thinking": newDeepseek41(deepseek41Variant{effort: 75, keeps: true}),

	"glm5_3_max_reasoning":  newGLM("Max"),
	"glm5_3_high_reasoning": newGLM("High"),
	"glm5_3_low_reasoning":  newGLM("Low"),

	"kimi_k2":                   newKimi(kimiVariant{declare: declareKimiK2, history: format.CurrentTurn}),
	"kimi_k25":                  newKimi(kimiThinking),
	"kimi_k25_disable_thinking": newKimi(kimiNoThinking),
	"kimi_k26":                  newKimi(kimiThinking),
	"kimi_k26_disable_thinking": newKimi(kimiNoThinking),
	"kimi_k26_preserve_thinking": newKimi(kimiVariant{declare: declareKimiK25, partsAllowed: true,
		given: []string{format.ThinkOpen}, keeps: true, history: format.Kept}),

	"nemotron3": newNemotron(nemotronVariant{history: format.CurrentTurn}),
	"nemotron3_low_thinking": newNemotron(nemotronVariant{effort: "\n\n{reasoning effort: low}",
		history: format.CurrentTurn}),
	"nemotron3_disable_thinking":  newNemotron(nemotronVariant{noThinking: true, history: format.Kept}),
	"nemotron3_preserve_thinking": newNemotron(nemotronVariant{keeps: true, history: format.Kept}),

	"nemotron3_ultra": newNemotron(nemotronVariant{ultra: true, history: format.CurrentTurn}),
	"nemotron3_ultra_medium_thinking": newNemotron(nemotronVariant{ultra: true,
		effort: "\n\n{reasoning effort: efficient}", partsAllowed: true, history: format.CurrentTurn}),
	"nemotron3_ultra_disable_thinking":  newNemotron(nemotronVariant{ultra: true, noThinking: true, history: format.Kept}),
	"nemotron3_ultra_preserve_thinking": newNemotron(nemotronVariant{ultra: true, keeps: true, history: format.Kept}),

	"gpt_oss_no_sysprompt":     newGptOss(""),
	"gpt_oss_low_reasoning":    newGptOss("low"),
	"gpt_oss_medium_reasoning": newGptOss("medium"),
	"gpt_oss_high_reasoning":   newGptOss("high"),
}

var (
	kimiThinking = kimiVariant{declare: declareKimiK25, partsAllowed: true, given: []string{format.ThinkOpen},
		history: format.CurrentTurn}
	kimiNoThinking = kimiVariant{declare: declareKimiK25, partsAllowed: true,
		given: []string{format.ThinkOpen, format.ThinkClose}, history: format.Kept}
)

// Names returns the names of all renderers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(variants)) }

// UnknownError reports that there is no renderer of a name.
type UnknownError struct {
	Name string
	// Known are the names of all renderers, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("no renderer has the name %q; take one of %s", e.Name, strings.Join(e.Known, ", "))
}

// New returns the renderer of a name for a tokenizer. Its error is an *UnknownError, or names what the tokenizer or
// the options lack.
func New(name string, tokens tokenizer.Tokenizer, options Options) (renderer.Renderer, error) {
	build, ok := variants[name]
	if !ok {
		return nil, &UnknownError{Name: name, Known: Names()}
	}
	f, err := build(tokens, options)
	if err != nil {
		return nil, fmt.Errorf("building renderer %s: %w", name, err)
	}
	return format.New(f), nil
}
