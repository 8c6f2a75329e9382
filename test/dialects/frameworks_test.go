// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance && agents

package dialects

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Words of a task that the policy follows.
const (
	withThoughts = "with-thoughts" // the policy reasons although its actions are texts
	forgetsCall  = "forgets-a-call"
	asksHelper   = "helper"
)

// clerk is a policy that calls the tool of the prompt, with reasoning and white space of its own, and then says that it
// is done. It knows the tools of frameworks.py.
type clerk struct {
	tokens tokenizer.Tokenizer
	// turns is the number of replies of a conversation.
	turns int
	// slow is the duration of every third reply.
	slow time.Duration

	mu sync.Mutex
	// asked counts how often each conversation was sampled, by its prompt.
	asked map[string]int
}

func (c *clerk) Sample(ctx context.Context, request episode.Request) (episode.Sample, error) {
	prompt, err := c.tokens.Decode(request.Prompt)
	if err != nil {
		return episode.Sample{}, err
	}
	c.mu.Lock()
	c.asked[prompt]++
	c.mu.Unlock()
	turn := strings.Count(prompt, "<|im_start|>assistant")
	if c.slow > 0 && turn%3 == 0 {
		select {
		case <-time.After(c.slow):
		case <-ctx.Done():
			return episode.Sample{}, ctx.Err()
		}
	}
	ids := c.tokens.AppendEncode(nil, c.reply(prompt, turn)+"<|im_end|>", tokenizer.Specials)
	return episode.Sample{Tokens: ids, Logprobs: make([]float32, len(ids)), Stopped: true}, nil
}

func (c *clerk) SampleGroup(context.Context, episode.Request, int) ([]episode.Sample, error) {
	return nil, fmt.Errorf("agents share no prompt")
}

// repeated returns the largest number of samples of one prompt.
func (c *clerk) repeated() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, samples := range c.asked {
		most = max(most, samples)
	}
	return most
}

// reply returns the policy's reply in a turn, counted from 1.
func (c *clerk) reply(prompt string, turn int) string {
	thought := fmt.Sprintf("<think>\nThis is turn  %d.\n</think>\n\n", turn)
	shell := fmt.Sprintf("echo  %d", turn)
	if turn >= c.turns {
		shell = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
	}
	switch {
	case strings.Contains(prompt, forgetsCall) && turn == 2 && !strings.Contains(prompt, "No tool calls found"):
		return thought + "I forgot to call the tool."
	case strings.Contains(prompt, "mswea_bash_command"):
		text := "THOUGHT: I go on. \n\n```mswea_bash_command\n" + shell + "\n```\n"
		if strings.Contains(prompt, withThoughts) {
			return thought + text
		}
		return text
	case strings.Contains(prompt, `"name": "bash"`):
		return thought + "I go on. \n<tool_call>\n{\"name\":  \"bash\", \"arguments\": {\"command\":\"" + shell +
			"\"}}\n</tool_call>"
	case turn >= c.turns:
		return thought + "I am done. \n"
	case strings.Contains(prompt, `"name": "helper"`) && turn == 2:
		return thought + "<tool_call>\n{\"name\": \"helper\", \"arguments\": {\"input\": \"Help.\"}}\n</tool_call>"
	}
	return thought + fmt.Sprintf("<tool_call>\n{\"name\":\"add\",  \"arguments\":{\"b\": %d,\"a\":1}}\n</tool_call>", turn)
}

// played is how a task of frameworks.py ended.
type played struct {
	Task  string `json:"task"`
	Said  string `json:"said"`
	Error string `json:"error"`
	Words string `json:"words"`
}

// playTasks plays tasks on a stage with an agent of a framework, in one episode.
func playTasks(t *testing.T, s stage, tokens tokenizer.Tokenizer, framework string,
	tasks ...string) (rl.Member, []played) {
	t.Helper()
	var ended []played
	python := frameworksPython(t)
	member := s.play(t, tokens, func(ctx context.Context, e *gateway.Episode) error {
		var out, log bytes.Buffer
		// With -P the module agents is the package openai-agents, and not agents.py of this folder.
		arguments := append([]string{"-P", "frameworks.py", framework, e.URL(dialect.Anthropic), e.Token()}, tasks...)
		cmd := exec.CommandContext(ctx, python, arguments...)
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("frameworks.py %s: %w\n%s", framework, err, log.Bytes())
		}
		var err error
		ended, err = readPlayed(&out)
		return err
	})
	return member, ended
}

// readPlayed reads the output of frameworks.py.
func readPlayed(out io.Reader) ([]played, error) {
	var ended []played
	for decoder := json.NewDecoder(out); decoder.More(); {
		var one played
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("reading what frameworks.py has printed: %w", err)
		}
		ended = append(ended, one)
	}
	return ended, nil
}

// frameworksPython is the interpreter that has the frameworks.
func frameworksPython(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../conformance/venv", "agents").Output()
	if err != nil {
		t.Fatalf("making the virtual environment: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin", "python")
}

// brokenBy returns the causes for which the conversations of a member were not continued, with their counts.
func brokenBy(m rl.Member) map[string]float64 {
	causes := map[string]float64{}
	for name, count := range m.Metrics {
		if cause, ok := strings.CutPrefix(name, "prefix_broken_"); ok && count > 0 {
			causes[cause] = count
		}
	}
	return causes
}

// keptOf returns how many replies of a member continue the tokens of the previous reply, and how many replies are not
// the first of their task.
func keptOf(m rl.Member, tasks int) (kept, later int) {
	later = -tasks
	for _, trajectory := range m.Trajectories {
		for _, segment := range trajectory.Segments {
			kept += repliesOf(segment) - 1
			later += repliesOf(segment)
		}
	}
	return kept, later
}

// report adds a line to the output of make conformance-agents.
func report(t *testing.T, format string, args ...any) {
	t.Helper()
	name := filepath.Join("..", "..", ".cache", "conformance-agents.txt")
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

// frameworks are the frameworks of frameworks.py, with the kinds of requests that each makes.
var frameworks = map[string][]string{
	"openai-agents": {"chat", "chat stream", "responses", "responses stream"},
	"litellm": {"chat", "chat stream", "chat async", "chat stream async", "messages", "messages stream", "messages async",
		"messages stream async"},
	"mini-swe-agent": {"chat", "chat text", "messages", "responses"},
	"langchain": {"chat", "chat stream", "chat stream async", "responses", "responses stream", "messages",
		"messages stream", "messages stream async"},
	"pydantic-ai": {"chat", "chat stream", "responses", "responses stream", "messages", "messages stream"},
}

// TestFrameworksKeepThePrefix runs an agent of each framework for 20 turns with a tool, once for each kind of request,
// and checks that all sampled tokens are kept.
func TestFrameworksKeepThePrefix(t *testing.T) {
	tokens := qwen3(t)
	for framework, tasks := range frameworks {
		t.Run(framework, func(t *testing.T) {
			policy := &clerk{tokens: tokens, turns: agentTurns, asked: map[string]int{}}
			m, ended := playTasks(t, stage{policy: policy}, tokens, framework, tasks...)
			checkEnded(t, ended, tasks)
			kept, later := keptOf(m, len(tasks))
			report(t, "%-14s keeps the prefix in %d of %d turns (%d%%), asking %d ways", framework, kept, later,
				100*kept/later, len(tasks))
			if want := len(tasks) * (agentTurns - 1); kept != want || later != want || len(m.Trajectories) != len(tasks) {
				t.Errorf("the prefix is kept in %d of %d turns of %d conversations, want %d turns and %d conversations: %v", kept,
					later, len(m.Trajectories), want, len(tasks), brokenBy(m))
			}
		})
	}
}

// checkEnded expects that each task has ended with the policy's last words.
func checkEnded(t *testing.T, ended []played, tasks []string) {
	t.Helper()
	for _, end := range ended {
		if end.Error != "" || strings.TrimSpace(end.Said) != "I am done." && end.Said != "Submitted" {
			t.Errorf("task %s ended with %+v, want the policy's last words", end.Task, end)
		}
	}
	if len(ended) != len(tasks) {
		t.Errorf("%d tasks ended, want %d", len(ended), len(tasks))
	}
}

// TestFrameworksBreakThePrefix plays agents that do not only extend their conversation, and counts the causes by name.
func TestFrameworksBreakThePrefix(t *testing.T) {
	tokens := qwen3(t)
	for name, tc := range map[string]struct {
		framework, task string
		want            map[string]float64
	}{
		// A sub-agent begins a conversation.
		"a helper": {"openai-agents", "chat " + asksHelper, map[string]float64{"start": 1}},
		// mini-swe-agent leaves out a reply in which it finds no command, and tells the policy so. Qwen3 drops the reasoning
		// before a message of the user.
		"a reply without a command": {"mini-swe-agent", "chat " + forgetsCall, map[string]float64{"fork": 1, "format": 1}},
		// Without tools the results are messages of the user, and Qwen3 drops the reasoning before each of them.
		"reasoning before texts": {"mini-swe-agent", "chat text " + withThoughts, map[string]float64{"format": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &clerk{tokens: tokens, turns: 6, asked: map[string]int{}}
			m, ended := playTasks(t, stage{policy: policy}, tokens, tc.framework, tc.task)
			checkEnded(t, ended, []string{tc.task})
			if diff := cmp.Diff(tc.want, brokenBy(m)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			kept, later := keptOf(m, 1)
			report(t, "%-14s keeps the prefix in %d of %d turns with %s: %v", tc.framework, kept, later, name, tc.want)
		})
	}
}

// TestFrameworksRepeatRequests lets the gateway ask clients to come back before the policy has answered, and checks
// that agents continue and that no prompt is sampled twice.
func TestFrameworksRepeatRequests(t *testing.T) {
	tokens := qwen3(t)
	for framework := range frameworks {
		t.Run(framework, func(t *testing.T) {
			tasks := []string{"chat", "messages"}
			if framework == "openai-agents" {
				tasks[1] = "responses"
			}
			policy := &clerk{tokens: tokens, turns: 4, slow: 800 * time.Millisecond, asked: map[string]int{}}
			at := stage{policy: policy, gateway: gateway.Config{AnswerWithin: 200 * time.Millisecond, RetryAfter: time.Second}}
			m, ended := playTasks(t, at, tokens, framework, tasks...)
			checkEnded(t, ended, tasks)
			if most := policy.repeated(); most != 1 {
				t.Errorf("a prompt was sampled %d times, want once", most)
			}
			if kept, later := keptOf(m, len(tasks)); kept != later || later != len(tasks)*3 {
				t.Errorf("the prefix is kept in %d of %d turns, want %d: %v", kept, later, len(tasks)*3, brokenBy(m))
			}
		})
	}
}

// TestFrameworksEndAtLimits runs agents into limits of the run: the turns of a conversation, and the tokens of a
// prompt. It checks that each agent ends with the exception that its framework has for such an error of a service.
func TestFrameworksEndAtLimits(t *testing.T) {
	const turns, promptTokens = 3, 3000
	tokens := qwen3(t)
	long := "chat" + strings.Repeat(" much", 2*promptTokens)
	for framework, want := range map[string]struct{ turns, prompt string }{
		"openai-agents":  {"RateLimitError", "BadRequestError"},
		"litellm":        {"RateLimitError", "ContextWindowExceededError"},
		"mini-swe-agent": {"RateLimitError", "ContextWindowExceededError"},
		// LangChain looks for the code of the error in the error's text, which lacks it in this version of OpenAI's client.
		"langchain":   {"OpenAIRateLimitError", "OpenAIInvalidRequestError"},
		"pydantic-ai": {"ModelQuotaExceededError", "ModelContextWindowExceededError"},
	} {
		t.Run(framework, func(t *testing.T) {
			policy := &clerk{tokens: tokens, turns: turns + 3, asked: map[string]int{}}
			at := stage{policy: policy, limits: playing.Limits{Turns: turns, PromptTokens: promptTokens}}
			_, ended := playTasks(t, at, tokens, framework, "chat", long)
			if len(ended) != 2 {
				t.Fatalf("%d tasks ended, want 2", len(ended))
			}
			if ended[0].Error != want.turns || !strings.Contains(ended[0].Words, "turns") {
				t.Errorf("at turns the agent ended with %+v, want %s", ended[0], want.turns)
			}
			if ended[1].Error != want.prompt || !strings.Contains(ended[1].Words, "maximum context length") {
				t.Errorf("at promptTokens the agent ended with %s (%s), want %s", ended[1].Error, ended[1].Words, want.prompt)
			}
			if len(policy.asked) != turns || policy.repeated() != 1 {
				t.Errorf("%d prompts were sampled, one of them %d times, want %d once each", len(policy.asked), policy.repeated(),
					turns)
			}
		})
	}
}

// TestAgentsOfOpenAIAskCheckpoints runs agents of openai-agents that ask the simulator's base model at a server of
// checkpoints like kubectl tinker serve.
func TestAgentsOfOpenAIAskCheckpoints(t *testing.T) {
	address := serveSums(t)
	tasks := []string{"chat plain 3+4=?", "chat stream plain 3+4=?", "responses plain 3+4=?",
		"responses stream plain 3+4=?"}
	arguments := append([]string{"-P", "frameworks.py", "openai-agents", address, "any"}, tasks...)
	cmd := exec.CommandContext(t.Context(), frameworksPython(t), arguments...)
	cmd.Env = append(os.Environ(), "MODEL=sums")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("frameworks.py: %v\n%s", err, log.Bytes())
	}
	ended, err := readPlayed(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range ended {
		if end.Error != "" || end.Said == "" {
			t.Errorf("task %s ended with %+v, want a text of the model", end.Task, end)
		}
	}
	if len(ended) != len(tasks) {
		t.Errorf("%d tasks ended, want %d", len(ended), len(tasks))
	}
}
