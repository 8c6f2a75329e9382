// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// randomText returns text of characters that JSON must escape, or that events must not break apart.
func randomText(r *rand.Rand) string {
	letters := []string{"a", "\n", "\r", `"`, `\`, "é", "日", "\U0001f600", "\u2028", "<", "&", "\x00", "data: ", " ", "}",
		"\ufffd"}
	var text strings.Builder
	for range r.IntN(12) {
		text.WriteString(letters[r.IntN(len(letters))])
	}
	if r.IntN(20) == 0 {
		return strings.Repeat(text.String(), 1000)
	}
	return text.String()
}

// randomMessage returns a reply of a policy.
func randomMessage(r *rand.Rand) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant}
	for range r.IntN(5) {
		m.Parts = append(m.Parts, chat.Part{Text: randomText(r), Thinking: r.IntN(2) == 0})
	}
	for i := range r.IntN(4) {
		arguments, err := json.Marshal(map[string]any{"a": randomText(r), "b": []any{r.Float64(), nil, r.Uint64()}})
		if err != nil {
			panic(err)
		}
		m.Calls = append(m.Calls, chat.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "add", Arguments: string(arguments)})
	}
	if len(m.Calls) == 0 && Normal(m).IsEmpty() {
		m.Parts = append(m.Parts, chat.Part{Text: "x"})
	}
	return m
}

// compactArguments compares arguments of calls without white space between tokens, which Anthropic's dialect does not
// keep.
var compactArguments = cmp.Transformer("compact", func(call chat.ToolCall) [3]string {
	var text bytes.Buffer
	if err := json.Compact(&text, []byte(call.Arguments)); err != nil {
		text.WriteString(call.Arguments)
	}
	return [3]string{call.ID, call.Name, text.String()}
})

// returned makes the body of a request in which a client sends a reply back.
func returned(endpoint Endpoint, body []byte) ([]byte, error) {
	switch endpoint {
	case ChatCompletions:
		var reply struct {
			Choices []struct{ Message json.RawMessage }
		}
		err := json.Unmarshal(body, &reply)
		return fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"q"},%s]}`, reply.Choices[0].Message), err
	case Responses:
		var reply struct{ Output []json.RawMessage }
		err := json.Unmarshal(body, &reply)
		items := ""
		for _, item := range reply.Output {
			items += "," + string(item)
		}
		return fmt.Appendf(nil, `{"model":"m","input":[{"role":"user","content":"q"}%s]}`, items), err
	default:
		var reply struct{ Content json.RawMessage }
		err := json.Unmarshal(body, &reply)
		return fmt.Appendf(nil, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"q"},`+
			`{"role":"assistant","content":%s}]}`, reply.Content), err
	}
}

// inOrder returns the message as chat/completions can say it: the reasoning first.
func inOrder(m chat.Message) chat.Message {
	thinking, text := texts(m)
	m.Thinking, m.Content, m.Parts = thinking, text, nil
	return m
}

func TestReturnedRepliesDecodeToTheirMessage(t *testing.T) {
	for name, endpoint := range map[string]Endpoint{"chat": ChatCompletions, "responses": Responses,
		"messages": Messages} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(400) {
				want := randomMessage(rand.New(rand.NewPCG(seed, uint64(endpoint)))) //nolint:gosec // A test's seed.
				reply := &Reply{
					ID: "reply_1", Created: time.Unix(1, 0), Model: "m", Sign: testSign, Choices: []Choice{{Message: want}},
				}
				request := &Request{Endpoint: endpoint, N: 1}
				body, err := Encode(request, reply)
				if err != nil {
					t.Fatal(err)
				}
				events, err := EncodeStream(request, reply)
				if err != nil {
					t.Fatal(err)
				}
				joined, err := join(endpoint, events)
				if err != nil {
					t.Fatalf("seed %d: joining events: %v", seed, err)
				}
				expected := Normal(want)
				if endpoint == ChatCompletions {
					expected = inOrder(want)
				}
				for form, text := range map[string][]byte{"body": body, "events": joined} {
					again, err := returned(endpoint, text)
					if err != nil {
						t.Fatal(err)
					}
					decoded, err := Decode(endpoint, again, testOptions(Refuse))
					if err != nil {
						t.Fatalf("seed %d: %s: %v\n%s", seed, form, err, again)
					}
					if diff := cmp.Diff([]chat.Message{expected}, decoded.Messages[1:], cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("seed %d: %s: message of the reply (-) and of the request (+) differ:\n%s", seed, form, diff)
					}
				}
			}
		})
	}
}

func TestNormalIsIdempotent(t *testing.T) {
	for seed := range uint64(400) {
		m := Normal(randomMessage(rand.New(rand.NewPCG(seed, 9)))) //nolint:gosec // A test's seed.
		if diff := cmp.Diff(m, Normal(m)); diff != "" {
			t.Fatalf("seed %d: once (-) and twice (+) differ:\n%s", seed, diff)
		}
	}
}
