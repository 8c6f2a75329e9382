// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// ofFamily returns the family whose vocabulary a renderer is tested with.
func ofFamily(name string) string {
	for prefix, family := range map[string]string{
		"llama3": "llama3", "qwen3_5": "qwen3_5", "qwen3_8": "qwen3_5", "deepseekv3": "deepseek_v3_1", "kimi": "kimi_k2",
		"nemotron": "nemotron3", "gpt_oss": "gpt_oss", "deepseekv4_1": "deepseek_v4_1", "glm5_3": "glm5_3",
	} {
		if strings.HasPrefix(name, prefix) {
			return family
		}
	}
	return "qwen3"
}

// asInARun builds a renderer with its part of a vocabulary, as a run does.
func asInARun(t *testing.T, name string) (renderer.Renderer, tokenizer.Tokenizer) {
	t.Helper()
	tokens := vocabulary(t, "", ofFamily(name))
	r, err := families.New(name, tokens, optionsInARun(name))
	if err != nil {
		t.Fatalf("New(%q): %v", name, err)
	}
	return r, tokens
}

// optionsInARun returns the options that a run builds a renderer with.
func optionsInARun(name string) families.Options {
	family := ofFamily(name)
	options := familyOptions[family]
	options.Date = goldenDate
	if options.End == "" {
		options.End = stopName[family]
	}
	return options
}

var stopName = map[string]string{"gpt_oss": "<|return|>", "kimi_k2": "<|im_end|>", "nemotron3": "<|im_end|>",
	"qwen3_5": "<|im_end|>"}

// arbitrary returns random ids of the vocabulary that a policy might sample. Often the last one is a stop.
func arbitrary(random *rand.Rand, known []int32, stop renderer.Stop) []int32 {
	ids := make([]int32, random.IntN(12))
	for i := range ids {
		ids[i] = known[random.IntN(len(known))]
	}
	if len(stop.Tokens) > 0 && random.IntN(4) > 0 {
		ids = append(ids, stop.Tokens[random.IntN(len(stop.Tokens))])
	}
	return ids
}

// knownIDs returns the ids that a part of a family's vocabulary has.
func knownIDs(family string, tokens tokenizer.Tokenizer) []int32 {
	if ids, ok := known[family]; ok {
		return ids
	}
	var ids []int32
	for id := range int32(260_000) {
		if _, err := tokens.Decode([]int32{id}); err == nil {
			ids = append(ids, id)
		}
	}
	known[family] = ids
	return ids
}

var known = map[string][]int32{}

// step returns the messages that continue a conversation after a reply.
type step func(reply chat.Message) []chat.Message

func userReplies(reply chat.Message) []chat.Message {
	return []chat.Message{reply, {Role: chat.RoleUser, Content: "Sure? "}}
}

func toolAnswers(reply chat.Message) []chat.Message {
	reply.Calls = []chat.ToolCall{{ID: "functions.add:0", Name: "add", Arguments: `{"a": 2}`}}
	return []chat.Message{reply, {Role: chat.RoleTool, Content: "4\n", Name: "add", CallID: "functions.add:0"}}
}

// extends renders a conversation with arbitrary replies, and returns the indexes of the replies after which the next
// prompt does not begin with the last prompt and the reply.
func extends(t *testing.T, r renderer.Renderer, known []int32, seed uint64, steps ...step) (broken []int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var rendered renderer.Rendered
	messages := []chat.Message{{Role: chat.RoleSystem, Content: "Be brief."}, {Role: chat.RoleUser, Content: "2+2?"}}
	for i, next := range steps {
		before := promptOf(t, r, messages, &rendered)
		sampled := arbitrary(random, known, r.Stop())
		following := next(chat.Message{})[1]
		if opensMessages(r) && len(sampled) > 0 && slices.Contains(r.Stop().Tokens, sampled[len(sampled)-1]) {
			sampled[len(sampled)-1] = openingOf(r, following.Role)
		}
		parsed, err := r.Parse(sampled)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, next(parsed.Message)...)
		after := promptOf(t, r, messages, &rendered)
		want := slices.Concat(before, sampled)
		if len(after) <= len(want) || !slices.Equal(after[:len(want)], want) {
			broken = append(broken, i)
		}
	}
	return broken
}

// opensMessages reports whether the stops of a renderer are the tokens that begin messages.
func opensMessages(r renderer.Renderer) bool { return len(r.Stop().Tokens) == 3 }

// openingOf returns the stop that begins a message of a role. The first stop of GLM is for the user, and the second for
// results.
func openingOf(r renderer.Renderer, role string) int32 {
	if role == chat.RoleTool {
		return r.Stop().Tokens[1]
	}
	return r.Stop().Tokens[0]
}

// promptOf renders a conversation, and checks that the prompt is the same with and without the last rendering.
func promptOf(t *testing.T, r renderer.Renderer, messages []chat.Message, last *renderer.Rendered) []int32 {
	t.Helper()
	want, err := r.Prompt(renderer.Conversation{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Prompt(renderer.Conversation{Messages: messages, Rendered: last})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the prompt after the last one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, last.IDs); diff != "" {
		t.Errorf("the last prompt that is kept (-want +got):\n%s", diff)
	}
	return got
}

// TestNextPromptExtendsSampledReply checks that the next prompt of a renderer that keeps history begins with the last
// prompt and the sampled reply, whatever was sampled. Otherwise turns would train separately.
func TestNextPromptExtendsSampledReply(t *testing.T) {
	for _, name := range families.Names() {
		if _, rewrites := rewritesHistory[name]; rewrites {
			continue // see TestPromptsExtendWithinTurn
		}
		r, tokens := asInARun(t, name)
		t.Run(name, func(t *testing.T) {
			steps := []step{userReplies, userReplies, userReplies}
			if hasTools(name) {
				steps = []step{toolAnswers, toolAnswers, userReplies, userReplies, toolAnswers, userReplies}
			}
			known := knownIDs(ofFamily(name), tokens)
			for seed := range uint64(40) {
				if broken := extends(t, r, known, seed, steps...); broken != nil {
					t.Fatalf("seed %d: after replies %v, the next prompt does not begin with the last one and the reply", seed, broken)
				}
			}
		})
	}
}

func hasTools(name string) bool { return !strings.HasPrefix(name, "role_colon") && name != "llama3" }

// rewritesHistory has the renderers that rewrite earlier replies; the value says whether the prompts of one turn extend
// each other nevertheless.
var rewritesHistory = map[string]bool{
	"qwen3": true, "qwen3_vl": true, "qwen3_vl_instruct": true, "qwen3_5": true, "qwen3_5_disable_thinking": true,
	"kimi_k2": true, "kimi_k25": true, "kimi_k26": true,
	"nemotron3": true, "nemotron3_low_thinking": true, "nemotron3_ultra": true, "nemotron3_ultra_medium_thinking": true,
	"qwen3_disable_thinking": false, "deepseekv3_thinking": false,
	"gpt_oss_no_sysprompt": false, "gpt_oss_low_reasoning": false, "gpt_oss_medium_reasoning": false,
	"gpt_oss_high_reasoning": false,
	// A result of a tool begins a new turn, unless tools are declared: see TestDeepseek41KeepsReasoningWithTools.
	"deepseekv4_1": false, "deepseekv4_1_low_reasoning": false, "deepseekv4_1_max_reasoning": false,
}

// TestPromptsExtendWithinTurn checks whether prompts extend each other between calls of tools: many formats drop
// reasoning only at the user's next message.
func TestPromptsExtendWithinTurn(t *testing.T) {
	for _, name := range families.Names() {
		want, rewrites := rewritesHistory[name]
		if !rewrites {
			continue
		}
		r, tokens := asInARun(t, name)
		t.Run(name, func(t *testing.T) {
			known := knownIDs(ofFamily(name), tokens)
			got := true
			for seed := range uint64(40) {
				got = got && extends(t, r, known, seed, toolAnswers, toolAnswers, toolAnswers) == nil
			}
			if got != want {
				t.Errorf("prompts extend within a turn: %v, want %v", got, want)
			}
		})
	}
}

// TestQwen3HistoryKeepsRepliesWithoutReasoning checks that a reply without reasoning keeps its sampled ids at the
// user's next message. A reply with reasoning is written from its text, without the reasoning.
func TestQwen3HistoryKeepsRepliesWithoutReasoning(t *testing.T) {
	r, tokens := asInARun(t, "qwen3")
	end := r.Stop().Tokens[0]
	plain := append(tokens.Encode(" 4 "), end)
	thoughtful := append(tokens.Encode("<think>\nhm\n</think>\n\n4"), end)
	cases := map[string]struct {
		sampled []int32
		want    []int32
	}{
		"without reasoning": {sampled: plain, want: plain},
		"with reasoning":    {sampled: thoughtful, want: append(tokens.Encode("4"), end)},
		"with an empty block": {sampled: append(tokens.Encode("<think>\n\n</think>\n\n4"), end),
			want: append(tokens.Encode("4"), end)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			messages := []chat.Message{{Role: chat.RoleUser, Content: "2+2?"}}
			before, err := r.Prompt(renderer.Conversation{Messages: messages})
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := r.Parse(tc.sampled)
			if err != nil {
				t.Fatal(err)
			}
			after, err := r.Prompt(renderer.Conversation{Messages: append(messages, userReplies(parsed.Message)...)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, after[len(before):len(before)+len(tc.want)]); diff != "" {
				t.Errorf("the reply in the next prompt (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRoleColonDoesNotRepeatSampledHeader continues replies of role_colon, which end with the header of the user's next
// message. If another role follows, the reply is written from its text.
func TestRoleColonDoesNotRepeatSampledHeader(t *testing.T) {
	r, tokens := asInARun(t, "role_colon")
	cases := map[string]struct {
		sampled string
		next    chat.Message
		want    string
	}{
		"a user's message": {sampled: " 4\n\nUser:", next: chat.Message{Role: chat.RoleUser, Content: "r"},
			want: "User: q\n\nAssistant: 4\n\nUser: r\n\nAssistant:"},
		"a reply with other white space": {sampled: "4 \n\nUser:", next: chat.Message{Role: chat.RoleUser, Content: "r"},
			want: "User: q\n\nAssistant:4 \n\nUser: r\n\nAssistant:"},
		"a system message": {sampled: " 4\n\nUser:", next: chat.Message{Role: chat.RoleSystem, Content: "r"},
			want: "User: q\n\nAssistant: 4\n\nSystem: r\n\nAssistant:"},
		"the reply was cut": {sampled: " 4", next: chat.Message{Role: chat.RoleUser, Content: "r"},
			want: "User: q\n\nAssistant: 4\n\nUser: r\n\nAssistant:"},
		"the reply ended with its text": {sampled: " 4<|im_end|>", next: chat.Message{Role: chat.RoleUser, Content: "r"},
			want: "User: q\n\nAssistant: 4<|im_end|>\n\nUser: r\n\nAssistant:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed, err := r.Parse(tokens.AppendEncode(nil, tc.sampled, tokenizer.Specials))
			if err != nil {
				t.Fatal(err)
			}
			messages := []chat.Message{{Role: chat.RoleUser, Content: "q"}, parsed.Message, tc.next}
			ids, err := r.Prompt(renderer.Conversation{Messages: messages})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := tokens.Decode(ids); err != nil || got != tc.want {
				t.Errorf("Prompt says %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestGptOssHistoryEndsAnswersWithEnd checks that an answer keeps its sampled ids in history, except for its stop
// token.
func TestGptOssHistoryEndsAnswersWithEnd(t *testing.T) {
	r, tokens := asInARun(t, "gpt_oss_no_sysprompt")
	id := func(name string) int32 {
		id, ok := tokens.Special(name)
		if !ok {
			t.Fatalf("the vocabulary has no %s", name)
		}
		return id
	}
	text := slices.Concat([]int32{id("<|channel|>")}, tokens.Encode("final"), []int32{id("<|message|>")},
		tokens.Encode("4"))
	cases := map[string]struct{ sampled, want []int32 }{
		"an answer ends": {sampled: append(slices.Clone(text), id("<|return|>")),
			want: append(slices.Clone(text), id("<|end|>"))},
		"a call stays": {sampled: append(slices.Clone(text), id("<|call|>")),
			want: append(slices.Clone(text), id("<|call|>"))},
		"a cut reply is closed": {sampled: text, want: append(slices.Clone(text), id("<|end|>"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			messages := []chat.Message{{Role: chat.RoleUser, Content: "2+2?"}}
			before, err := r.Prompt(renderer.Conversation{Messages: messages})
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := r.Parse(tc.sampled)
			if err != nil {
				t.Fatal(err)
			}
			after, err := r.Prompt(renderer.Conversation{Messages: append(messages, userReplies(parsed.Message)...)})
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Concat(before, tc.want, []int32{id("<|start|>")}, tokens.Encode("user"), []int32{id("<|message|>")})
			if diff := cmp.Diff(want, after[:len(want)]); diff != "" {
				t.Errorf("the next prompt (-want +got):\n%s", diff)
			}
		})
	}
}
