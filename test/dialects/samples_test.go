// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package dialects

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// clientSamples are the samples whose agents use the packages of the services.
var clientSamples = []string{"agent-openai", "agent-anthropic"}

// readSample returns a sample and its first object.
func readSample(t *testing.T, name string) ([]byte, v1alpha1.RewardEnvironment) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	var of v1alpha1.RewardEnvironment
	if err := yaml.UnmarshalStrict(first, &of); err != nil {
		t.Fatal(err)
	}
	return text, of
}

// clientsPython is the interpreter that has the packages of the services.
func clientsPython(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../conformance/venv", "dialects").Output()
	if err != nil {
		t.Fatalf("making the virtual environment: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin", "python")
}

// TestSamplesPlay plays the samples by kubectl tinker try, with the packages that their requirements name.
func TestSamplesPlay(t *testing.T) {
	python := clientsPython(t)
	installed, err := exec.CommandContext(t.Context(), python, "-m", "pip", "freeze").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range clientSamples {
		t.Run(name, func(t *testing.T) {
			manifest, of := readSample(t, name)
			for _, requirement := range of.Spec.Execution.Requirements {
				if !strings.Contains("\n"+string(installed), "\n"+string(requirement)+"\n") {
					t.Errorf("the sample requires %s, and the test's environment has\n%s", requirement, installed)
				}
			}
			groups, progress := trySample(t, manifest, python)
			if !strings.Contains(progress, "a right answer earns 1") {
				t.Errorf("a right answer does not earn 1:\n%s", progress)
			}
			for _, g := range groups {
				for _, e := range g.Episodes {
					if e.Outcome != "Usable" || len(e.Conversations) != 1 || len(e.Conversations[0].Tools) != 2 {
						t.Errorf("slot %d has an episode %s with %+v, want one conversation with two tools (%s)", g.Slot, e.Outcome,
							e.Conversations, g.Reason)
					}
				}
			}
			if len(groups) != 2 {
				t.Errorf("%d episodes, want 2", len(groups))
			}
		})
	}
}

// speaker is a policy that gives its replies one after the other.
type speaker struct {
	tokens  tokenizer.Tokenizer
	replies []string

	mu      sync.Mutex
	prompts []string
}

func (s *speaker) Sample(_ context.Context, request episode.Request) (episode.Sample, error) {
	prompt, err := s.tokens.Decode(request.Prompt)
	if err != nil {
		return episode.Sample{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = append(s.prompts, prompt)
	if len(s.prompts) > len(s.replies) {
		return episode.Sample{}, fmt.Errorf("the policy was asked %d times", len(s.prompts))
	}
	ids := s.tokens.AppendEncode(nil, s.replies[len(s.prompts)-1]+"<|im_end|>", tokenizer.Specials)
	return episode.Sample{Tokens: ids, Logprobs: make([]float32, len(ids)), Stopped: true}, nil
}

func (s *speaker) SampleGroup(context.Context, episode.Request, int) ([]episode.Sample, error) {
	return nil, fmt.Errorf("agents share no prompt")
}

// TestSamplesCallTools lets a policy call the tools of the samples: first both at once, then with wrong arguments. It
// checks that the policy receives the results, and that the sampled tokens are kept.
func TestSamplesCallTools(t *testing.T) {
	python, tokens := clientsPython(t), qwen3(t)
	call := func(name, arguments string) string {
		return fmt.Sprintf("<tool_call>\n{\"name\":  %q, \"arguments\": %s}\n</tool_call>", name, arguments)
	}
	for _, name := range clientSamples {
		t.Run(name, func(t *testing.T) {
			policy := &speaker{tokens: tokens, replies: []string{
				call("add", `{"b": 40,"a":  2}`) + "\n" + call("multiply", `{"a": 6, "b": 9}`),
				"<think>\nAgain.\n</think>\n\n" + call("divide", `{"a": 1, "b": 0}`) + "\n" + call("add", `{"a": "x"}`),
				"<think>\nSo be it.\n</think>\n\nIt is 42.",
			}}
			said := ""
			m := stage{policy: policy}.play(t, tokens, func(ctx context.Context, e *gateway.Episode) (err error) {
				said, err = runSample(ctx, t, name, python, e)
				return err
			})
			if strings.TrimSpace(said) != "It is 42." || len(policy.prompts) != len(policy.replies) {
				t.Fatalf("the agent says %q after %d replies, want the last one", said, len(policy.prompts))
			}
			results := func(prompt string) []string {
				var all []string
				for _, after := range strings.Split(prompt, "<tool_response>\n")[1:] {
					result, _, _ := strings.Cut(after, "\n</tool_response>")
					all = append(all, strings.TrimPrefix(result, "error: "))
				}
				return all
			}
			want := []string{"42", "54", "KeyError('divide')", "ValueError(\"invalid literal for int() with base 10: 'x'\")"}
			if diff := cmp.Diff(want, results(policy.prompts[2])); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if len(m.Trajectories) != 1 || len(m.Trajectories[0].Segments) != 1 ||
				repliesOf(m.Trajectories[0].Segments[0]) != len(policy.replies) {
				t.Errorf("the tokens begin anew: %v", m.Metrics)
			}
		})
	}
}

// runSample runs the agent of a sample in an episode, and returns its output.
func runSample(ctx context.Context, t *testing.T, name, python string, e *gateway.Episode) (string, error) {
	t.Helper()
	task := `{"messages": [{"role": "user", "content": "40+2=?"}]}`
	file := filepath.Join(t.TempDir(), "task.json")
	if err := os.WriteFile(file, []byte(task), 0o600); err != nil {
		return "", err
	}
	_, of := readSample(t, name)
	agent := of.Spec.Interaction.Agent
	arguments := []string{"-c", "", e.URLWithToken()}
	if agent.Python != nil {
		arguments[1] = agent.Python.Code +
			"\nimport asyncio, sys\nprint(asyncio.run(agent(" + task + ", sys.argv[1])), end='')\n"
	} else {
		arguments[1] = agent.Command[2]
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, python, arguments...)
	cmd.Stderr = &log
	cmd.Env = append(os.Environ(), "TASK_FILE="+file, "ANTHROPIC_BASE_URL="+e.URL(dialect.Anthropic),
		"ANTHROPIC_API_KEY="+e.Token())
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, log.Bytes())
	}
	return string(out), nil
}

// trySample plays two episodes of a manifest on this machine, with the packages of an interpreter and with variables.
// It returns the episodes, and the progress that the command prints.
func trySample(t *testing.T, manifest []byte, python string, variables ...string) ([]transcript.Group, string) {
	t.Helper()
	tags, err := os.ReadFile("../../hack/build-tags")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "kubectl-tinker")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", strings.TrimSpace(string(tags)), "-o", binary,
		"../../cmd/kubectl-tinker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-tinker: %v\n%s", err, out)
	}
	var out, progress bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "try", "-f", "-", "--episodes", "2", "-o", "json")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(manifest), &out, &progress
	cmd.Env = append(os.Environ(), append(variables,
		"PATH="+filepath.Dir(python)+string(filepath.ListSeparator)+os.Getenv("PATH"))...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("kubectl tinker try: %v\n%s", err, progress.Bytes())
	}
	var groups []transcript.Group
	if err := json.Unmarshal(out.Bytes(), &groups); err != nil {
		t.Fatal(err)
	}
	return groups, progress.String()
}
