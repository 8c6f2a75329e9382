// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// echo is a policy whose replies number the requests of a conversation. It records the requests.
type echo struct {
	// most is how many replies a conversation has; 0 means no limit.
	most int
	// asked, if not nil, is called before each reply.
	asked func(n int)

	mu      sync.Mutex
	turns   map[string]int
	prompts []environment.Prompt
	tokens  []environment.TokenPrompt
}

func (e *echo) next(key string) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turns == nil {
		e.turns = map[string]int{}
	}
	if e.most > 0 && e.turns[key] == e.most {
		return 0, &environment.LimitError{Limit: "turns"}
	}
	e.turns[key]++
	if e.asked != nil {
		total := 0
		for _, n := range e.turns {
			total += n
		}
		e.asked(total)
	}
	return e.turns[key], nil
}

func (e *echo) Chat(_ context.Context, prompt environment.Prompt) (environment.Reply, error) {
	n, err := e.next(prompt.Conversation)
	if err != nil {
		return environment.Reply{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prompts = append(e.prompts, prompt)
	return environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: fmt.Sprint(prompt.Conversation, n),
		Calls: []chat.ToolCall{{ID: "c", Name: "add", Arguments: "{}"}}, Reply: n}}, nil
}

func (e *echo) Sample(_ context.Context, prompt environment.TokenPrompt) (environment.TokenReply, error) {
	_, err := e.next(prompt.Conversation)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens = append(e.tokens, prompt)
	return environment.TokenReply{Tokens: []int32{7, 8}, Truncated: true}, err
}

// episodes begins an environment of code, and returns its first episode.
func (r *runner) episodes(t *testing.T, code string, waits bool, roles ...string) environment.Program {
	t.Helper()
	host := &Host{Socket: r.socket(), InheritEnv: true, Wait: waits}
	t.Cleanup(host.Close)
	rows, err := dataset.NewArithmetic(9)
	if err != nil {
		t.Fatal(err)
	}
	env, err := NewEpisodes(host, rows, roles, Options{Code: code, Processes: 1, Concurrency: 8})
	if err != nil {
		t.Fatal(err)
	}
	started, err := env.Start(t.Context(), environment.Task{Split: "train", Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return started.(environment.Program)
}

// TestEpisodeAsksThePolicy plays a function that gives back replies, declares tools, and uses roles and keys.
func TestEpisodeAsksThePolicy(t *testing.T) {
	const code = `
import asyncio

async def episode(row, policy, seed):
    assert seed == 5 and row["prompt"] and row["answer"]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": row["prompt"]}]
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    reply = await policy.chat(messages, tools=tools, role="solver", key="a")
    assert reply.text == "a1" and reply.tool_calls == [{"id": "c", "name": "add", "arguments": "{}"}]
    messages += reply.messages + [{"role": "tool", "content": "4", "tool_call_id": "c", "name": "add"}]
    await policy.chat(messages, role="solver", key="a")
    both = await asyncio.gather(*(policy.chat("Hi", role="judge", key=key) for key in "bc"))
    return {"reward": 0.5, "rewards": {"c": 3, "b": 2.5, "a": True}, "correct": True, "replies": len(both)}
`
	policy := &echo{}
	turn, err := startRunner(t).episodes(t, code, false, "judge", "solver").Run(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	want := environment.Turn{Done: true, Metrics: map[string]float64{"correct": 1, "replies": 2},
		Rewards: []environment.Reward{{Value: 0.5}, {Conversation: "a", Value: 1}, {Conversation: "b", Value: 2.5},
			{Conversation: "c", Value: 3}}}
	if diff := cmp.Diff(want, turn); diff != "" {
		t.Errorf("the turn (-want +got):\n%s", diff)
	}
	second := policy.prompts[1]
	call := []chat.ToolCall{{ID: "c", Name: "add", Arguments: "{}"}}
	given := []chat.Message{{Role: "assistant", Content: "a1", Calls: call, Reply: 1},
		{Role: "tool", Content: "4", CallID: "c", Name: "add"}}
	if diff := cmp.Diff(given, second.Messages[2:]); diff != "" || second.Role != "solver" || second.Conversation != "a" {
		t.Errorf("the second prompt is of %s in %s, its last messages (-want +got):\n%s", second.Role, second.Conversation,
			diff)
	}
	tools := policy.prompts[0].Tools
	if len(tools) != 1 || tools[0].Name != "add" || string(tools[0].Parameters) != `{"type":"object"}` {
		t.Errorf("the tools are %+v", tools)
	}
}

func TestClassWithStartAndStep(t *testing.T) {
	const code = `
class Environment:
    def start(self, row, seed):
        self.turns = 0
        return [{"role": "user", "content": row["prompt"]}]

    def step(self, reply):
        self.turns += 1
        if self.turns == 3:
            return {"messages": None, "reward": 1.0, "done": True, "turns_taken": self.turns}
        return "Again.", 0.25, False
`
	policy := &echo{}
	turn, err := startRunner(t).episodes(t, code, false).Run(t.Context(), policy)
	want := environment.Turn{Done: true, Rewards: []environment.Reward{{Value: 1.5}},
		Metrics: map[string]float64{"turns_taken": 3}}
	if diff := cmp.Diff(want, turn); diff != "" || err != nil {
		t.Errorf("Run: %v; the turn (-want +got):\n%s", err, diff)
	}
	got := policy.prompts[2].Messages
	if len(got) != 5 || got[1].Reply != 1 || got[3].Reply != 2 || got[4].Content != "Again." {
		t.Errorf("the third prompt has the messages %+v", got)
	}
}

func TestEpisodeInTokens(t *testing.T) {
	const code = `
async def episode(row, policy, seed):
    first = await policy.sample([1, 2], stop=[8])
    assert first.tokens == [7, 8] and first.truncated
    await policy.sample([1, 2] + first.tokens, stop="x")
    await policy.sample([3], stop=["x", "y"])
    await policy.sample([3])
    return 1
`
	policy := &echo{}
	if _, err := startRunner(t).episodes(t, code, false).Run(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	want := []environment.TokenPrompt{{Tokens: []int32{1, 2}, StopTokens: []int32{8}},
		{Tokens: []int32{1, 2, 7, 8}, StopStrings: []string{"x"}}, {Tokens: []int32{3}, StopStrings: []string{"x", "y"}},
		{Tokens: []int32{3}}}
	if diff := cmp.Diff(want, policy.tokens); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

// TestLimitsOfEpisodes reaches a limit: code may catch it, and otherwise it ends the episode.
func TestLimitsOfEpisodes(t *testing.T) {
	r := startRunner(t)
	const catching = `
async def episode(row, policy, seed):
    for n in range(9):
        try:
            await policy.chat("Hi")
        except policy.LimitReached:
            return n
`
	turn, err := r.episodes(t, catching, false).Run(t.Context(), &echo{most: 3})
	if err != nil || !cmp.Equal(turn.Rewards, []environment.Reward{{Value: 3}}) {
		t.Errorf("Run: %+v, %v, want a reward of 3", turn, err)
	}
	const forward = `
async def episode(row, policy, seed):
    while True:
        await policy.chat("Hi")
`
	_, err = r.episodes(t, forward, false).Run(t.Context(), &echo{most: 3})
	if limit := (*environment.LimitError)(nil); !errors.As(err, &limit) || limit.Limit != "turns" {
		t.Errorf("Run: %v, want the limit of turns", err)
	}
}

// TestEpisodesAtFault plays code that raises, asks questions that are not allowed, or returns values that are not a
// result.
func TestEpisodesAtFault(t *testing.T) {
	r := startRunner(t)
	cases := map[string]struct{ body, want string }{
		"an exception":       {`return row["missing"]`, "user_code.py:3: KeyError: 'missing'"},
		"an unknown role":    {`await policy.chat("Hi", role="judge")`, `the role "judge" is not among`},
		"an unknown field":   {`await policy.chat([{"role": "user", "content": "", "refusal": 1}])`, `unknown field "refusal"`},
		"no content":         {`await policy.chat([{"role": "user", "content": [1]}])`, "content must be a text"},
		"no messages":        {`await policy.chat([])`, "messages is empty"},
		"a judge":            {`await policy.judge("Hi")`, "The policy has chat and sample, and not judge."},
		"None":               {`await policy.chat("Hi")`, "None"},
		"a coroutine":        {`return policy.chat("Hi")`, "never awaited"},
		"a text for rewards": {`return {"rewards": 1}`, "rewards must be a dict"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code := "\nasync def episode(row, policy, seed):\n    " + tc.body + "\n"
			_, err := r.episodes(t, code, false, "solver", "").Run(t.Context(), &echo{})
			var fault *environment.Fault
			if !errors.As(err, &fault) || !fault.Permanent || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run: %v, want a permanent fault that says %q", err, tc.want)
			}
		})
	}
}

func TestCodeThatPlaysNoEpisodes(t *testing.T) {
	r := startRunner(t)
	for code, want := range map[string]string{
		"def reward(row, reply): return 1":         "The code defines no function: define async def episode(row, policy",
		"def episode(row, policy, seed): return 1": "must be written with async def",
		"async def episode(row): return 1":         "must take the arguments of episode(row, policy, seed)",
		"class Environment:\n  def start(self): 1": "must take the arguments of Environment.start(self, row, seed)",
	} {
		host := &Host{Socket: r.socket(), InheritEnv: true}
		t.Cleanup(host.Close)
		rows, err := dataset.NewArithmetic(9)
		if err != nil {
			t.Fatal(err)
		}
		env, err := NewEpisodes(host, rows, nil, Options{Code: code, Processes: 1, Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		var wrong *CodeError
		err = env.Check(t.Context())
		if !errors.As(err, &wrong) || !wrong.IsFinal() || !strings.Contains(err.Error(), want) {
			t.Errorf("Check of %q: %v, want %q", code, err, want)
		}
	}
}

// talkative asks in two conversations at once, three times in each.
const talkative = `
import asyncio, os

async def talk(policy, key):
    messages = [{"role": "user", "content": "Hi"}]
    for _ in range(3):
        reply = await policy.chat(messages, key=key)
        messages = messages + reply.messages + [{"role": "user", "content": "And?"}]
    return reply.text

async def episode(row, policy, seed):
    texts = await asyncio.gather(talk(policy, "a"), talk(policy, "b"))
    return {"reward": 1, "last": int(texts[0][1:] + texts[1][1:])}
`

// TestEpisodeWhoseProcessDies ends the process of an episode, and then its runner: the episode is played again, and
// each reply is asked for once.
func TestEpisodeWhoseProcessDies(t *testing.T) {
	kill := "    if not os.path.exists(%q):\n        open(%q, 'w').close()\n        os._exit(3)\n"
	for name, dies := range map[string]func(t *testing.T, r *runner) (code string, asked func(int)){
		"the process": func(t *testing.T, _ *runner) (string, func(int)) {
			marker := t.TempDir() + "/died"
			return strings.Replace(talkative, "    return {", fmt.Sprintf(kill, marker, marker)+"    return {", 1), nil
		},
		"the runner": func(t *testing.T, r *runner) (string, func(int)) {
			return talkative, func(n int) {
				if n == 3 {
					r.kill()
					r.start(t)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRunner(t)
			code, asked := dies(t, r)
			policy := &echo{asked: asked}
			turn, err := r.episodes(t, code, true).Run(t.Context(), policy)
			want := environment.Turn{Done: true, Rewards: []environment.Reward{{Value: 1}},
				Metrics: map[string]float64{"last": 33}}
			if diff := cmp.Diff(want, turn); diff != "" || err != nil {
				t.Fatalf("Run: %v; the turn (-want +got):\n%s", err, diff)
			}
			var keys []string
			for _, prompt := range policy.prompts {
				keys = append(keys, fmt.Sprint(prompt.Conversation, len(prompt.Messages)))
			}
			slices.Sort(keys)
			if diff := cmp.Diff([]string{"a1", "a3", "a5", "b1", "b3", "b5"}, keys); diff != "" {
				t.Errorf("requests by conversation and length (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEpisodeThatDoesNotRepeatItself asks other questions after its process has died. That is a fault: otherwise the
// earlier replies would be trained on.
func TestEpisodeThatDoesNotRepeatItself(t *testing.T) {
	marker := t.TempDir() + "/died"
	code := fmt.Sprintf(`
import os

async def episode(row, policy, seed):
    again = os.path.exists(%q)
    await policy.chat("Hi again" if again else "Hi")
    if not again:
        open(%q, "w").close()
        os._exit(3)
    return 1
`, marker, marker)
	_, err := startRunner(t).episodes(t, code, false).Run(t.Context(), &echo{})
	var fault *environment.Fault
	if !errors.As(err, &fault) || fault.Permanent || !strings.Contains(err.Error(), "asked otherwise") {
		t.Errorf("Run: %v, want a fault that is tried again", err)
	}
}
