// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// captured is a conversation of the capture proxy of tinker-cookbook, which test/dialects/capture.py has recorded.
type captured struct {
	Family, Renderer, Conversation, Path string
	// Request is the last request. The request of a turn has the first of its messages, Turns[i].Messages in number.
	Request map[string]json.RawMessage
	Turns   []struct {
		Messages      int
		Prompt, Reply []int32
		// Whole is the prompt that the proxy's renderer makes of the replies with their reasoning, if it differs from Prompt.
		Whole []int32
	}
}

// The reasons for another prompt than the proxy's.
const (
	// kept says that the prompt begins with the prompt and the sampled tokens of the turn before. The proxy encodes their
	// text again, without the reasoning or with other white space.
	kept = "the tokens that were sampled are kept"
	// whole says that the prompt is the one that the proxy's renderer makes of the replies with their reasoning. The proxy
	// gives its renderer the replies without reasoning.
	whole = "the replies are known with their reasoning"
)

// onPurpose are the conversations with other prompts than the proxy's, by renderer, with the reason.
var onPurpose = map[string]map[string]string{
	"qwen3": because(kept, calls),
	"qwen3_instruct": both(because(kept, texts[3:]), because(kept, []string{"a call", "calls at once",
		"calls at once by messages"})),
	"qwen3_5":                     because(kept, calls),
	"deepseekv3_thinking":         because(whole, calls),
	"nemotron3":                   both(because(whole, texts), because(kept, calls)),
	"nemotron3_disable_thinking":  because(kept, texts[3:]),
	"nemotron3_preserve_thinking": both(because(whole, texts), because(kept, calls)),
	"gpt_oss_low_reasoning":       both(because(whole, texts[3:]), because(kept, calls)),
}

// The conversations with calls, and those without.
var (
	calls = []string{"a call", "a call by messages", "calls at once", "calls at once by messages"}
	texts = []string{"texts", "texts by messages", "spaces", "reasoning", "reasoning by messages"}
)

func because(reason string, conversations []string) map[string]string {
	reasons := map[string]string{}
	for _, name := range conversations {
		reasons[name] = reason
	}
	return reasons
}

func both(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}

// replayed is a policy that repeats recorded replies, and notes the prompts.
type replayed struct {
	conversation captured
	prompts      *[][]int32
}

func (r replayed) Sample(_ context.Context, request episode.Request) (episode.Sample, error) {
	reply := r.conversation.Turns[len(*r.prompts)].Reply
	*r.prompts = append(*r.prompts, request.Prompt)
	return episode.Sample{Tokens: reply, Logprobs: make([]float32, len(reply)), Stopped: true}, nil
}

func (r replayed) SampleGroup(context.Context, episode.Request, int) ([]episode.Sample, error) {
	return nil, errors.New("agents share no prompt")
}

// TestPromptsAreThoseOfTheCaptureProxy repeats the requests that recorded agents of linear conversations made to the
// capture proxy of tinker-cookbook 0.6.1. The gateway makes the same tokens of each prompt, except where another prompt
// is intended.
func TestPromptsAreThoseOfTheCaptureProxy(t *testing.T) {
	for _, conversation := range readCaptured(t) {
		t.Run(conversation.Renderer+"/"+conversation.Conversation, func(t *testing.T) {
			prompts, _ := replay(t, conversation)
			var reason string
			for i, turn := range conversation.Turns {
				if slices.Equal(prompts[i], turn.Prompt) {
					continue
				}
				reason = "of nothing that is known"
				switch {
				case slices.Equal(prompts[i], turn.Whole):
					reason = whole
				case i > 0 && startsWith(prompts[i], prompts[i-1], conversation.Turns[i-1].Reply):
					reason = kept
				}
				t.Logf("turn %d: the proxy has %v,\nand the gateway %v", i, turn.Prompt, prompts[i])
				break
			}
			if want := onPurpose[conversation.Renderer][conversation.Conversation]; reason != want {
				t.Errorf("the prompts differ because %q, want %q", reason, want)
			}
		})
	}
}

// TestReasoningIsCounted checks that the usage of replies says how many of their tokens are reasoning.
func TestReasoningIsCounted(t *testing.T) {
	played := 0
	for _, conversation := range readCaptured(t) {
		if conversation.Renderer != "qwen3" || conversation.Path != "/v1/chat/completions" {
			continue
		}
		tokens := vocabulary(t, conversation.Family)
		_, answers := replay(t, conversation)
		for i, turn := range conversation.Turns {
			said, err := tokens.Decode(turn.Reply)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if before, _, ok := strings.Cut(said, "</think>"); ok && strings.Contains(before, "Let me see.") {
				want = len(tokens.AppendEncode(nil, before+"</think>", tokenizer.Specials))
				played++
			}
			if !strings.Contains(answers[i], fmt.Sprintf(`"reasoning_tokens":%d}`, want)) {
				t.Errorf("%s: the reply %q has %d tokens of reasoning: %s", conversation.Conversation, said, want, answers[i])
			}
		}
	}
	if played < 2 {
		t.Errorf("%d replies have reasoning, want two or more", played)
	}
}

func startsWith(all, first, second []int32) bool {
	return len(all) >= len(first)+len(second) && slices.Equal(all[:len(first)+len(second)], slices.Concat(first, second))
}

// replay plays a conversation, and returns the prompts and the answers.
func replay(t *testing.T, conversation captured) (prompts [][]int32, answers []string) {
	t.Helper()
	var server *gateway.Server
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) }))
	defer web.Close()
	server = gateway.New(web.URL, gateway.Config{})
	options := capturedOptions[conversation.Family]
	options.Date = "2026-11-21"
	format, err := families.New(conversation.Renderer, vocabulary(t, conversation.Family), options)
	if err != nil {
		t.Fatal(err)
	}
	run := func(e *gateway.Episode) error {
		for turn := range conversation.Turns {
			answer, err := askTurn(t.Context(), e, conversation, turn)
			if err != nil {
				return err
			}
			answers = append(answers, answer)
		}
		return nil
	}
	player := &episode.Player{Environment: &played{server: server, run: run}, Renderer: format,
		Policy: replayed{conversation, &prompts}, Gate: open{}, Progress: &episode.Progress{}}
	group, err := player.Play(t.Context(), capturedSpec())
	if err != nil {
		t.Fatal(err)
	}
	if group.Outcome != rl.Usable || len(group.Members[0].Trajectories) != 1 {
		t.Fatalf("the episode is %v with %d conversations: %s", group.Outcome, len(group.Members[0].Trajectories),
			group.Reason)
	}
	return prompts, answers
}

func capturedSpec() episode.Spec {
	return episode.Spec{
		Key: rl.Key{Lineage: rl.Genesis("spec")}, GroupSize: 1, MinMembers: 1, Seed: 42,
		Settings: contract.Environment{Name: "env",
			Sampling: playing.Sampling{MaxTokens: 1000, Temperature: new(1.0), TopP: 1},
			Reward:   playing.EpisodeReward{Reduction: "Sum"}},
	}
}

// askTurn makes a request of a turn, and returns the answer.
func askTurn(ctx context.Context, e *gateway.Episode, conversation captured, turn int) (string, error) {
	var messages []json.RawMessage
	if err := json.Unmarshal(conversation.Request["messages"], &messages); err != nil {
		return "", err
	}
	body := map[string]any{"messages": messages[:conversation.Turns[turn].Messages]}
	for name, value := range conversation.Request {
		if name != "messages" {
			body[name] = value
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	url := e.URL(dialect.Anthropic) + conversation.Path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(text)))
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Api-Key", e.Token())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("turn %d: status %d: %s", turn, response.StatusCode, answer)
	}
	return string(answer), err
}

// capturedOptions name the tokens that begin and end texts, as families' own tests have them.
var capturedOptions = map[string]families.Options{
	"qwen3":         {End: "<|im_end|>"},
	"deepseek_v3_1": {Begin: "<｜begin▁of▁sentence｜>", End: "<｜end▁of▁sentence｜>"},
}

func readCaptured(t *testing.T) []captured {
	t.Helper()
	var all []captured
	decoder := json.NewDecoder(strings.NewReader(string(unzipped(t, "testdata/capture.jsonl.gz"))))
	for decoder.More() {
		var one captured
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func vocabulary(t testing.TB, family string) tokenizer.Tokenizer {
	t.Helper()
	tokens, err := tokenizer.Parse(unzipped(t, "../renderer/families/testdata/tokenizers/"+family+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func unzipped(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
