// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package dialects

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// agentTurns is the number of turns that each agent plays.
const agentTurns = 20

// TestAgentsOfOfficialClients plays agents of two versions of the official clients at a gateway, synchronously and
// asynchronously, with bodies and with streams. It checks that every turn keeps the sampled tokens.
func TestAgentsOfOfficialClients(t *testing.T) {
	tokens := qwen3(t)
	for _, requirements := range []string{"dialects", "dialects-oldest"} {
		t.Run(requirements, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "../conformance/venv", requirements).Output()
			if err != nil {
				t.Fatalf("making the virtual environment: %v", err)
			}
			python := strings.TrimSpace(string(out)) + "/bin/python"
			m := stage{policy: caller{tokens}}.play(t, tokens, func(ctx context.Context, e *gateway.Episode) error {
				var log bytes.Buffer
				cmd := exec.CommandContext(ctx, python, "agents.py", e.URL(dialect.Anthropic), e.Token(),
					strconv.Itoa(agentTurns))
				cmd.Stderr = &log
				if err := cmd.Run(); err != nil {
					return fmt.Errorf("agents.py: %w\n%s", err, log.Bytes())
				}
				return nil
			})
			if len(m.Trajectories) != 12 {
				t.Errorf("%d conversations, want 12", len(m.Trajectories))
			}
			kept, turns := 0, 0
			for _, trajectory := range m.Trajectories {
				replies := repliesOf(trajectory.Segments[0])
				kept, turns = kept+replies-1, turns+agentTurns-1
				if len(trajectory.Segments) != 1 || replies != agentTurns {
					t.Errorf("conversation %s has %d segments, the first with %d replies; want one with %d", trajectory.Key,
						len(trajectory.Segments), replies, agentTurns)
				}
			}
			t.Logf("the clients of %s.txt keep the sampled tokens in %d of %d turns", requirements, kept, turns)
			for name := range m.Metrics {
				if strings.HasPrefix(name, "prefix_broken_") && !slices.Contains([]string{"prefix_broken_start",
					"prefix_broken_user"}, name) {
					t.Errorf("metric %s is %v, want none", name, m.Metrics[name])
				}
			}
		})
	}
}

// repliesOf counts the replies in a segment.
func repliesOf(segment rl.Segment) int {
	replies := 0
	for i, action := range segment.Actions {
		if action && !segment.Actions[i-1] {
			replies++
		}
	}
	return replies
}

// agentEpisode is an episode that an agent plays.
type agentEpisode struct {
	environment.Unasked
	server *gateway.Server
	run    func(ctx context.Context, e *gateway.Episode) error
}

func (a *agentEpisode) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (a *agentEpisode) Start(context.Context, environment.Task) (environment.Episode, error) {
	return a, nil
}

func (a *agentEpisode) Close(context.Context) {}

func (a *agentEpisode) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	e := a.server.Open(ctx, policy.(environment.AgentPolicy), gateway.Options{})
	defer e.Close()
	if err := a.run(ctx, e); err != nil {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: err}
	}
	if ending := e.End(); !ending.IsWhole() {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: fmt.Errorf("requests are left: %+v", ending)}
	}
	return environment.Turn{Done: true, Rewards: []environment.Reward{{Value: 1}}}, nil
}

// caller is a policy that reasons and calls the tool, with white space of its own.
type caller struct{ tokens tokenizer.Tokenizer }

func (c caller) Sample(_ context.Context, request episode.Request) (episode.Sample, error) {
	reply := fmt.Sprintf("<think>\nI add %d.\n</think>\n\n<tool_call>\n{\"name\":\"add\",  \"arguments\":{\"b\": "+
		"%d,\"a\":1}}"+
		"\n</tool_call><|im_end|>", len(request.Prompt), request.Seed(rl.UsePolicy, 1)%1000)
	ids := c.tokens.AppendEncode(nil, reply, tokenizer.Specials)
	return episode.Sample{Tokens: ids, Logprobs: make([]float32, len(ids)), Stopped: true}, nil
}

func (c caller) SampleGroup(context.Context, episode.Request, int) ([]episode.Sample, error) {
	return nil, fmt.Errorf("agents share no prompt")
}

// open is a gate without a limit.
type open struct{}

func (open) Enter(ctx context.Context) error { return ctx.Err() }
func (open) Leave()                          {}

// stage is the setting of an agent's episode: its gateway, its policy and its limits.
type stage struct {
	gateway gateway.Config
	policy  episode.Policy
	limits  playing.Limits
}

// play plays one episode of an agent, in the format of Qwen3, and returns the member.
func (s stage) play(t *testing.T, tokens tokenizer.Tokenizer,
	run func(context.Context, *gateway.Episode) error) rl.Member {
	t.Helper()
	server, err := gateway.Listen(s.gateway)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	format, err := families.New("qwen3", tokens, families.Options{End: "<|im_end|>"})
	if err != nil {
		t.Fatal(err)
	}
	player := &episode.Player{Environment: &agentEpisode{server: server, run: run}, Renderer: format,
		Policy: s.policy, Gate: open{}, Progress: &episode.Progress{}}
	group, err := player.Play(t.Context(), episode.Spec{
		Key: rl.Key{Slot: 7, Lineage: rl.Genesis("spec")}, GroupSize: 1, MinMembers: 1, Seed: 42,
		Settings: contract.Environment{Name: "env", Limits: s.limits,
			Sampling: playing.Sampling{MaxTokens: 1000, Temperature: new(1.0), TopP: 1},
			Reward:   playing.EpisodeReward{Reduction: "Sum"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if group.Outcome != rl.Usable {
		t.Fatalf("the episode is %v: %s", group.Outcome, group.Reason)
	}
	return group.Members[0]
}

// qwen3 returns the part of Qwen3's tokenizer that the renderers' tests have.
func qwen3(t *testing.T) tokenizer.Tokenizer {
	t.Helper()
	file, err := os.Open("../../internal/renderer/families/testdata/tokenizers/qwen3.json.gz")
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
