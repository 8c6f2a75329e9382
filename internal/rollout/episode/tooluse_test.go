// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// calculatorEnvironment returns an environment of sums below 100, in which the policy may call the calculator.
func calculatorEnvironment(t *testing.T) environment.Environment {
	t.Helper()
	rows, err := dataset.NewArithmetic(99)
	if err != nil {
		t.Fatal(err)
	}
	env, err := tooluse.New(tooluse.NewLocal(rows, verify.ExactMatch{}, tooluse.Calculator{}),
		tooluse.Options{MaxParseErrors: 1})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func rendererOf(t *testing.T, name string, tokens tokenizer.Tokenizer) renderer.Renderer {
	t.Helper()
	r, err := families.New(name, tokens, families.Options{End: "<|im_end|>"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// qwen3 returns the part of Qwen3's tokenizer that is in the test data of the renderers.
func qwen3(t *testing.T) tokenizer.Tokenizer {
	t.Helper()
	file, err := os.Open("../../renderer/families/testdata/tokenizers/qwen3.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// TestToolUseInAModelsOwnFormat plays sums with a calculator in formats of Qwen3.
func TestToolUseInAModelsOwnFormat(t *testing.T) {
	const (
		call = "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [99, " +
			"99]}}\n</tool_call>"
		broken = "<tool_call>\n{\"name\": \"calculator\", \"arguments\"\n</tool_call>"
		think  = "<think>\nI had better ask.\n</think>\n\n"
	)
	cases := map[string]struct {
		renderer string
		replies  []string
		// segments has the number of replies in each segment.
		segments []int
		reward   float64
		metrics  map[string]float64
		// lastPrompt is a part of the last prompt.
		lastPrompt string
	}{
		"history stays as it was sampled": {
			"qwen3", []string{call, "It is 198."}, []int{2}, 1,
			map[string]float64{"turns": 2, "tool_calls": 1, "correct": 1}, "<tool_response>\n198\n</tool_response>",
		},
		"between calls reasoning stays, too": {
			"qwen3", []string{think + call, call, think + "198"}, []int{3}, 1,
			map[string]float64{"turns": 3, "tool_calls": 2, "correct": 1}, "<tool_response>\n198\n</tool_response>",
		},
		"a broken reply without reasoning is followed on": {
			"qwen3", []string{broken, "198"}, []int{2}, 1,
			map[string]float64{"turns": 2, "parse_errors": 1, "correct": 1}, "No tool was called",
		},
		"when the user speaks, reasoning before is dropped": {
			"qwen3", []string{think + broken, "198"}, []int{1, 1}, 1,
			map[string]float64{"turns": 2, "parse_errors": 1, "correct": 1}, "No tool was called",
		},
		"a format that rewrites history begins anew": {
			"qwen3_disable_thinking", []string{call, "198"}, []int{1, 1}, 1,
			map[string]float64{"turns": 2, "tool_calls": 1, "correct": 1}, "<tool_response>\n198\n</tool_response>",
		},
		"two broken replies end it": {
			"qwen3_instruct", []string{broken, broken + "198"}, []int{2}, 0,
			map[string]float64{"turns": 2, "parse_errors": 2, "no_answer": 1}, "No tool was called",
		},
	}
	tokens := qwen3(t)
	env := calculatorEnvironment(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := rendererOf(t, tc.renderer, tokens)
			policy := &script{tokens: tokens, replies: tc.replies}
			g := singleMember(nil)
			g.Split, g.Task = "train", 7993
			p := &Player{Environment: env, Renderer: r, Policy: policy, Gate: open{}, Progress: &Progress{}}
			group, err := p.Play(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			m := group.Members[0]
			if m.Reward != tc.reward || len(policy.prompts) != len(tc.replies) {
				t.Errorf("reward %v after %d prompts: %s", m.Reward, len(policy.prompts), group.Reason)
			}
			for metric, want := range tc.metrics {
				if m.Metrics[metric] != want {
					t.Errorf("metric %s is %v, want %v", metric, m.Metrics[metric], want)
				}
			}
			var segments []int
			for _, s := range segmentsOf(m) {
				segments = append(segments, repliesIn(s.Actions))
			}
			if diff := cmp.Diff(tc.segments, segments); diff != "" {
				t.Errorf("replies in each segment (-want +got):\n%s", diff)
			}
			if last := policy.prompts[len(policy.prompts)-1]; !strings.Contains(last, tc.lastPrompt) ||
				!strings.Contains(policy.prompts[0], `"name": "calculator"`) {
				t.Errorf("the last prompt is:\n%s", last)
			}
		})
	}
}

// TestToolUseInADialect plays a sum in formats that write calls in another way, or have no calls.
func TestToolUseInADialect(t *testing.T) {
	const (
		inJSON = "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [99, " +
			"99]}}\n</tool_call>"
		inXML = "<tool_call>\n<function=calculator>\n<parameter=operation>\nadd\n</parameter>\n<parameter=operands>\n[99, " +
			"99]\n</parameter>\n</function>\n</tool_call>"
	)
	tokens, env := qwen3(t), calculatorEnvironment(t)
	for _, tc := range []struct {
		renderer string
		xml      bool
		call     string
	}{{"qwen3", true, inXML}, {"role_colon_end", false, inJSON}, {"role_colon_end", true, inXML}} {
		policy := &script{tokens: tokens, replies: []string{tc.call, "It is 198."}}
		g := singleMember(nil)
		g.Split, g.Task = "train", 7993
		r := families.WithCalls(rendererOf(t, tc.renderer, tokens), tc.xml)
		p := &Player{Environment: env, Renderer: r, Policy: policy, Gate: open{}, Progress: &Progress{}}
		group, err := p.Play(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		m := group.Members[0]
		if m.Reward != 1 || m.Metrics["tool_calls"] != 1 || m.Metrics["parse_errors"] != 0 || len(segmentsOf(m)) != 1 {
			t.Errorf("%s, XML %v: reward %v in %d segments, metrics %v: %s", tc.renderer, tc.xml, m.Reward, len(segmentsOf(m)),
				m.Metrics, group.Reason)
		}
		if last := policy.prompts[len(policy.prompts)-1]; !strings.Contains(last, "<tool_response>\n198\n</tool_response>") {
			t.Errorf("%s, XML %v: the last prompt is:\n%s", tc.renderer, tc.xml, last)
		}
	}
}

// TestToolCallsBeyondTheLimitAreNotRun samples a reply with more calls than limits.toolCalls permits.
func TestToolCallsBeyondTheLimitAreNotRun(t *testing.T) {
	const call = "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [99, " +
		"99]}}\n</tool_call>"
	cases := map[string]struct {
		limit   int
		replies []string
		calls   float64
		stop    string
	}{
		"more calls than the limit":          {2, []string{call + "\n" + call + "\n" + call}, 2, "tool_calls"},
		"more calls than are left":           {3, []string{call, call + "\n" + call + "\n" + call}, 3, "tool_calls"},
		"as many calls as the limit":         {3, []string{call + "\n" + call + "\n" + call}, 3, "tool_calls"},
		"an answer before the limit":         {3, []string{call + "\n" + call, "198"}, 2, "stop"},
		"many calls where there is no limit": {0, []string{call + "\n" + call + "\n" + call, "198"}, 3, "stop"},
	}
	tokens := qwen3(t)
	env, r := calculatorEnvironment(t), rendererOf(t, "qwen3", tokens)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := &script{tokens: tokens, replies: tc.replies}
			g := singleMember(func(s *contract.Environment) { s.Limits.ToolCalls = int32(tc.limit) })
			g.Split, g.Task = "train", 7993
			p := &Player{Environment: env, Renderer: r, Policy: policy, Gate: open{}, Progress: &Progress{}}
			group, err := p.Play(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			m := group.Members[0]
			if m.Metrics["tool_calls"] != tc.calls || m.StopReason != tc.stop || len(policy.prompts) != len(tc.replies) {
				t.Errorf("%v calls in %d turns, ended by %s; want %v in %d by %s: %s",
					m.Metrics["tool_calls"], len(policy.prompts), m.StopReason, tc.calls, len(tc.replies), tc.stop, group.Reason)
			}
		})
	}
}

// repliesIn counts the runs of consecutive actions.
func repliesIn(actions []bool) int {
	runs := 0
	for i, action := range actions {
		if action && (i == 0 || !actions[i-1]) {
			runs++
		}
	}
	return runs
}

// script is a policy that replies with one text after the other, and records the requests.
type script struct {
	tokens  tokenizer.Tokenizer
	replies []string
	prompts []string
}

func (s *script) Sample(_ context.Context, request Request) (Sample, error) {
	asked, err := s.tokens.Decode(request.Prompt)
	if err != nil {
		return Sample{}, err
	}
	s.prompts = append(s.prompts, asked)
	ids := s.tokens.AppendEncode(nil, s.replies[request.Turn]+"<|im_end|>", tokenizer.Specials)
	return Sample{Tokens: ids, Logprobs: slices.Repeat([]float32{-0.5}, len(ids)), Stopped: true}, nil
}

func (s *script) SampleGroup(ctx context.Context, request Request, members int) ([]Sample, error) {
	return policyFunc(s.Sample).SampleGroup(ctx, request, members)
}
