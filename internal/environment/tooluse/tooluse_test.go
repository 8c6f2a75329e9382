// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// lastSum is the task "What is 99 + 99?".
var lastSum = environment.Task{Split: "train", Index: 7993}

func newLocal(t *testing.T) *Local {
	t.Helper()
	rows, err := dataset.NewArithmetic(99)
	if err != nil {
		t.Fatal(err)
	}
	return NewLocal(rows, verify.ExactMatch{}, Calculator{})
}

func start(t *testing.T, backend Backend, options Options) (environment.Episode, []environment.Prompt) {
	t.Helper()
	if options.MaxParseErrors == 0 {
		options.MaxParseErrors = 1
	}
	env, err := New(backend, options)
	if err != nil {
		t.Fatal(err)
	}
	episode, err := env.Start(t.Context(), lastSum)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { episode.Close(context.Background()) })
	prompts, err := episode.Prompts(t.Context())
	if err != nil {
		t.Fatalf("Prompts: %v", err)
	}
	return episode, prompts
}

func answerWith(text string) environment.Reply {
	return environment.Reply{Message: chat.Message{Role: "assistant", Content: text}}
}

func callWith(arguments ...string) environment.Reply {
	reply := answerWith("")
	for _, text := range arguments {
		reply.Message.Calls = append(reply.Message.Calls, chat.ToolCall{ID: "c", Name: "calculator", Arguments: text})
	}
	return reply
}

func callsTool(name string) environment.Reply {
	reply := answerWith("")
	reply.Message.Calls = []chat.ToolCall{{Name: name, Arguments: "{}"}}
	return reply
}

func malformed(text string) environment.Reply {
	reply := answerWith(text)
	reply.Malformed = "a call has no name"
	return reply
}

func truncated(text string) environment.Reply {
	reply := answerWith(text)
	reply.Truncated = true
	return reply
}

const add = `{"operation":"add","operands":[99,99]}`

func TestEpisode(t *testing.T) {
	const retry = "Error: a call has no name. No tool was called. Please write the message again."
	tool := func(id, name, text string) chat.Message {
		return chat.Message{Role: "tool", CallID: id, Name: name, Content: text}
	}
	user := func(text string) chat.Message { return chat.Message{Role: "user", Content: text} }
	cases := map[string]struct {
		replies []environment.Reply
		// last are the messages after the last reply.
		last []chat.Message
		// rewards, metrics and done are expected of the last turn.
		rewards []float64
		metrics map[string]float64
		done    bool
	}{
		"an answer at once": {
			replies: []environment.Reply{answerWith("198")},
			rewards: []float64{1}, done: true, metrics: map[string]float64{"turns": 1, "correct": 1},
		},
		"a wrong answer": {
			replies: []environment.Reply{answerWith("188")},
			rewards: []float64{0}, done: true, metrics: map[string]float64{"turns": 1, "wrong": 1},
		},
		"a call gets its result": {
			replies: []environment.Reply{callWith(add)},
			last:    []chat.Message{tool("c", "calculator", "198")},
			metrics: map[string]float64{"turns": 1, "tool_calls": 1},
		},
		"an answer after a call": {
			replies: []environment.Reply{callWith(add), answerWith("It is 198.")},
			rewards: []float64{1}, done: true, metrics: map[string]float64{"turns": 2, "tool_calls": 1, "correct": 1},
		},
		"two calls get two results": {
			replies: []environment.Reply{callWith(add, `{"operation":"subtract","operands":[99,1]}`)},
			last:    []chat.Message{tool("c", "calculator", "198"), tool("c", "calculator", "98")},
			metrics: map[string]float64{"turns": 1, "tool_calls": 2},
		},
		"a call with wrong arguments": {
			replies: []environment.Reply{callWith(`{"operation":"add"}`)},
			last:    []chat.Message{tool("c", "calculator", "Error: operands is missing.")},
			metrics: map[string]float64{"turns": 1, "tool_calls": 1, "tool_errors": 1},
		},
		"a call of an unknown tool": {
			replies: []environment.Reply{callsTool("search")},
			last:    []chat.Message{tool("", "search", `Error: there is no tool "search". The tools are: calculator.`)},
			metrics: map[string]float64{"turns": 1, "tool_calls": 1, "tool_errors": 1},
		},
		"a malformed reply": {
			replies: []environment.Reply{malformed("198")},
			last:    []chat.Message{user(retry)},
			metrics: map[string]float64{"turns": 1, "parse_errors": 1},
		},
		"a malformed reply is retried": {
			replies: []environment.Reply{malformed(""), callWith(add), answerWith("198")},
			rewards: []float64{1}, done: true, metrics: map[string]float64{"turns": 3, "parse_errors": 1, "tool_calls": 1,
				"correct": 1},
		},
		"two malformed replies in a row end the episode": {
			replies: []environment.Reply{malformed(""), malformed("198")},
			rewards: []float64{0}, done: true, metrics: map[string]float64{"turns": 2, "parse_errors": 2, "no_answer": 1},
		},
		"two malformed replies with another between them": {
			replies: []environment.Reply{malformed(""), callWith(add), malformed("")},
			last:    []chat.Message{user(retry)},
			metrics: map[string]float64{"turns": 3, "parse_errors": 2, "tool_calls": 1},
		},
		"a truncated reply ends the episode": {
			replies: []environment.Reply{callWith(add), truncated("The sum is 198")},
			rewards: []float64{0}, done: true, metrics: map[string]float64{"turns": 2, "tool_calls": 1, "truncated": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			episode, prompts := start(t, newLocal(t), Options{})
			var turn environment.Turn
			for i, reply := range tc.replies {
				before := prompts
				var err error
				if turn, err = episode.Step(t.Context(), []environment.Reply{reply}); err != nil {
					t.Fatalf("Step %d: %v", i, err)
				}
				if prompts = turn.Prompts; len(prompts) > 0 {
					checkExtends(t, before[0].Messages, reply, prompts[0].Messages)
				}
			}
			checkTurn(t, turn, tc.rewards, tc.metrics, tc.done)
			if tc.done {
				return
			}
			messages := prompts[0].Messages
			if diff := cmp.Diff(tc.last, messages[len(messages)-len(tc.last):]); diff != "" {
				t.Errorf("the last messages (-want +got):\n%s", diff)
			}
		})
	}
}

// checkExtends checks that a prompt consists of the previous prompt, the unchanged reply and more.
func checkExtends(t *testing.T, before []chat.Message, reply environment.Reply, after []chat.Message) {
	t.Helper()
	want := append(append([]chat.Message{}, before...), reply.Message)
	if len(after) <= len(want) {
		t.Fatalf("nothing was added to %v", want)
	}
	if diff := cmp.Diff(want, after[:len(want)]); diff != "" {
		t.Errorf("the conversation was rewritten (-want +got):\n%s", diff)
	}
}

// checkTurn compares a turn. Metrics that are not named must be 0.
func checkTurn(t *testing.T, turn environment.Turn, rewards []float64, metrics map[string]float64, done bool) {
	t.Helper()
	var got []float64
	for _, reward := range turn.Rewards {
		got = append(got, reward.Value)
	}
	if diff := cmp.Diff(rewards, got); diff != "" || turn.Done != done || done == (len(turn.Prompts) > 0) {
		t.Errorf("turn %+v: done %v, want %v, rewards (-want +got):\n%s", turn, turn.Done, done, diff)
	}
	for name, value := range turn.Metrics {
		if name != "answered" && value != metrics[name] {
			t.Errorf("metric %s is %v, want %v", name, value, metrics[name])
		}
	}
	for name := range metrics {
		if _, ok := turn.Metrics[name]; !ok {
			t.Errorf("there is no metric %s", name)
		}
	}
}

func TestFirstPrompt(t *testing.T) {
	question := chat.Message{Role: "user", Content: "What is 99 + 99?"}
	declared := []chat.Tool{Calculator{}.Describe()}
	cases := map[string]struct {
		system string
		want   []chat.Message
		tools  []chat.Tool
	}{
		"no system prompt": {want: []chat.Message{question}, tools: declared},
		"a system prompt": {
			system: "Be brief.", want: []chat.Message{{Role: "system", Content: "Be brief."}, question}, tools: declared,
		},
		"a system prompt with the placeholder": {
			system: "Call tools. <tools>$(tools)</tools>",
			want: []chat.Message{{Role: "system", Content: `Call tools. <tools>{"name":"calculator","description":"` +
				declared[0].Description + `","parameters":` + string(declared[0].Parameters) + `}</tools>`}, question},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, prompts := start(t, newLocal(t), Options{SystemPrompt: tc.system})
			if diff := cmp.Diff([]environment.Prompt{{Messages: tc.want, Tools: tc.tools}}, prompts); diff != "" {
				t.Errorf("Prompts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeTools(t *testing.T) {
	got := describe([]chat.Tool{{Name: "a", Description: "A."}, {Name: "b", Parameters: json.RawMessage("{")}})
	if want := `{"name":"a","description":"A.","parameters":{}}` + "\nb:  {"; got != want {
		t.Errorf("describe = %q, want %q", got, want)
	}
}

func TestParseErrorsAreMasked(t *testing.T) {
	for name, tc := range map[string]struct {
		mask bool
		want []string
	}{"kept": {}, "masked": {mask: true, want: []string{""}}} {
		t.Run(name, func(t *testing.T) {
			episode, _ := start(t, newLocal(t), Options{MaskParseErrors: tc.mask})
			for _, reply := range []environment.Reply{malformed(""), malformed("")} {
				turn, err := episode.Step(t.Context(), []environment.Reply{reply})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, turn.Masked); diff != "" {
					t.Errorf("Masked (-want +got):\n%s", diff)
				}
			}
			other, _ := start(t, newLocal(t), Options{MaskParseErrors: tc.mask})
			if turn, err := other.Step(t.Context(), []environment.Reply{callWith(add)}); err != nil || turn.Masked != nil {
				t.Errorf("a reply without a parse error is masked: %v, %v", turn.Masked, err)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	cases := map[string]struct {
		replies []environment.Reply
		rewards []float64
		metrics map[string]float64
	}{
		"before any reply": {metrics: map[string]float64{"turns": 0}},
		"after a call": {replies: []environment.Reply{callWith(add)}, rewards: []float64{0},
			metrics: map[string]float64{"turns": 1, "tool_calls": 1, "no_answer": 1}},
		"after a call with text": {replies: []environment.Reply{withText(callWith(add), "198")}, rewards: []float64{0},
			metrics: map[string]float64{"turns": 1, "tool_calls": 1, "no_answer": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			episode, _ := start(t, newLocal(t), Options{})
			for _, reply := range tc.replies {
				if _, err := episode.Step(t.Context(), []environment.Reply{reply}); err != nil {
					t.Fatal(err)
				}
			}
			turn, err := episode.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			checkTurn(t, turn, tc.rewards, tc.metrics, true)
		})
	}
}

func withText(reply environment.Reply, text string) environment.Reply {
	reply.Message.Content = text
	return reply
}

// rewardingBackend is a backend whose tools give rewards and end episodes, as tools of a server may do.
type rewardingBackend struct {
	Backend
	fail error
}

func (r rewardingBackend) Open(context.Context, environment.Task) (Session, error) {
	return &rewardingSession{r}, nil
}

type rewardingSession struct{ rewardingBackend }

func (*rewardingSession) Messages(context.Context) ([]chat.Message, error) {
	return []chat.Message{{Role: "user", Content: "Submit 4."}}, nil
}

func (*rewardingSession) Tools(context.Context) ([]chat.Tool, error) {
	return []chat.Tool{{Name: "submit"}}, nil
}

func (s *rewardingSession) Call(_ context.Context, call chat.ToolCall) (Result, error) {
	if s.fail != nil {
		return Result{}, s.fail
	}
	right := call.Arguments == `{"answer":4}`
	rewards := []environment.Reward{{Value: 0.25}}
	if right {
		rewards[0].Value = 1
	}
	return Result{Text: "noted", Rewards: rewards, Done: right}, nil
}

func (s *rewardingSession) Answer(context.Context, environment.Reply) (Outcome, error) {
	return Outcome{Text: "Use the tool."}, s.fail
}

func (s *rewardingSession) Finish(context.Context, *environment.Reply) (Outcome, error) {
	return Outcome{}, s.fail
}

func (*rewardingSession) Close(context.Context) {}

func TestBackendRewardsCalls(t *testing.T) {
	episode, _ := start(t, rewardingBackend{}, Options{})
	reminded, err := episode.Step(t.Context(), []environment.Reply{answerWith("4")})
	if err != nil || reminded.Done || len(reminded.Rewards) > 0 || len(reminded.Prompts) != 1 {
		t.Fatalf("a reply without calls gave %+v, %v, want a reminder", reminded, err)
	}
	// The second call ends the episode: the third is not run.
	turn, err := episode.Step(t.Context(), []environment.Reply{callWith(`{}`, `{"answer":4}`, `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	checkTurn(t, turn, []float64{0.25, 1}, map[string]float64{"turns": 2, "tool_calls": 2}, true)
	if turn.ToolCalls != 2 {
		t.Errorf("%d calls were counted, want 2", turn.ToolCalls)
	}
}

func TestFaultsOfBackendAreReturned(t *testing.T) {
	fault := &environment.Fault{Err: errors.New("the server is down")}
	steps := map[string]func(environment.Episode) error{
		"in a call": func(e environment.Episode) error {
			_, err := e.Step(t.Context(), []environment.Reply{callWith(add)})
			return err
		},
		"at an answer": func(e environment.Episode) error {
			_, err := e.Step(t.Context(), []environment.Reply{answerWith("4")})
			return err
		},
		"at the end": func(e environment.Episode) error {
			_, err := e.Finish(t.Context())
			return err
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			episode, _ := start(t, rewardingBackend{fail: fault}, Options{})
			if err := step(episode); !errors.Is(err, fault) {
				t.Errorf("err = %v, want the fault", err)
			}
		})
	}
	episode, _ := start(t, rewardingBackend{}, Options{})
	if _, err := episode.Step(t.Context(), nil); err == nil || !environment.AsFault(err).Permanent {
		t.Errorf("a step without replies: %v, want a permanent fault", err)
	}
}

func TestUnknownTask(t *testing.T) {
	env, err := New(newLocal(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, startErr := env.Start(t.Context(), environment.Task{Split: "validation"})
	_, _, answersErr := env.Answers(t.Context(), environment.Task{Split: "validation"})
	for name, err := range map[string]error{"Start": startErr, "Answers": answersErr} {
		if err == nil || !environment.AsFault(err).Permanent {
			t.Errorf("%s: err = %v, want a permanent fault", name, err)
		}
	}
	right, wrong, err := env.Answers(t.Context(), lastSum)
	if err != nil || right != "198" || wrong == right {
		t.Errorf("Answers = %q, %q, %v", right, wrong, err)
	}
}

func TestNewRejectsNegativeMaxParseErrors(t *testing.T) {
	if _, err := New(newLocal(t), Options{MaxParseErrors: -1}); err == nil || !strings.Contains(err.Error(),
		"maxConsecutive") {
		t.Errorf("New = %v, want an error that names maxConsecutive", err)
	}
}
