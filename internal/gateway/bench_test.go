// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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

// played is an environment whose episodes are a function that makes requests.
type played struct {
	environment.Unasked
	server *gateway.Server
	run    func(e *gateway.Episode) error
}

func (p *played) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (p *played) Start(context.Context, environment.Task) (environment.Episode, error) { return p, nil }

func (p *played) Close(context.Context) {}

func (p *played) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	e := p.server.Open(ctx, policy.(environment.AgentPolicy), gateway.Options{})
	defer e.Close()
	if err := p.run(e); err != nil {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: err}
	}
	return environment.Turn{Done: true, Rewards: []environment.Reward{{Value: 1}}}, nil
}

// talker is a policy that gives the same reply at once.
type talker struct{ tokens []int32 }

func (t talker) Sample(context.Context, episode.Request) (episode.Sample, error) {
	return episode.Sample{Tokens: t.tokens, Logprobs: make([]float32, len(t.tokens)), Stopped: true}, nil
}

func (t talker) SampleGroup(context.Context, episode.Request, int) ([]episode.Sample, error) {
	return nil, fmt.Errorf("agents share no prompt")
}

type open struct{}

func (open) Enter(ctx context.Context) error { return ctx.Err() }
func (open) Leave()                          {}

// words returns a text of about the given number of tokens. Each message number has a text of its own.
func words(number, tokens int) string {
	return fmt.Sprint("message ", number, ":", strings.Repeat(" the quick brown fox jumps over", tokens/6))
}

// play plays members at once, and returns them.
func play(b *testing.B, server *gateway.Server, members int, run func(e *gateway.Episode) error) []rl.Member {
	b.Helper()
	tokens := vocabulary(b, "qwen3")
	format, err := families.New("qwen3", tokens, families.Options{End: "<|im_end|>"})
	if err != nil {
		b.Fatal(err)
	}
	said := tokens.AppendEncode(nil, words(0, 100)+"<|im_end|>", tokenizer.Specials)
	player := &episode.Player{Environment: &played{server: server, run: run}, Renderer: format, Policy: talker{said},
		Gate: open{}, Progress: &episode.Progress{}}
	group, err := player.Play(b.Context(), episode.Spec{
		Key: rl.Key{Lineage: rl.Genesis("spec")}, GroupSize: members, MinMembers: members, Seed: 42,
		Settings: contract.Environment{Name: "env",
			Sampling: playing.Sampling{MaxTokens: 1000, Temperature: new(1.0), TopP: 1},
			Reward:   playing.EpisodeReward{Reduction: "Sum"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if group.Outcome != rl.Usable {
		b.Fatalf("the group is %v: %s", group.Outcome, group.Reason)
	}
	return group.Members
}

// message is a message of a conversation.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func bodyOf(messages []message) []byte {
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		panic(err)
	}
	return body
}

// saidIn returns the message of a reply.
func saidIn(body []byte) (message, error) {
	var reply struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(body, &reply); err != nil || len(reply.Choices) == 0 {
		return message{}, fmt.Errorf("the reply is %.200s", body)
	}
	return reply.Choices[0].Message, nil
}

// used returns the processor time that this process has used.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkExtension measures a request that extends a conversation of 4,000 tokens by 200. The goal is a median of 2
// ms of CPU.
func BenchmarkExtension(b *testing.B) {
	server := gateway.New("", gateway.Config{})
	var times []time.Duration
	post := func(e *gateway.Episode, messages []message) []byte {
		request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, e.URL(dialect.OpenAI)+"/chat/completions",
			bytes.NewReader(bodyOf(messages)))
		request.Header.Set("Authorization", "Bearer "+e.Token())
		w := httptest.NewRecorder()
		before := used()
		server.ServeHTTP(w, request)
		times = append(times, used()-before)
		return w.Body.Bytes()
	}
	play(b, server, 1, func(e *gateway.Episode) error {
		var messages []message
		for i := range 10 {
			messages = append(messages, message{"user", words(i, 300)})
			said, err := saidIn(post(e, messages))
			if err != nil {
				return err
			}
			messages = append(messages, said)
		}
		times = nil
		b.ResetTimer()
		for i := range b.N {
			extended := append(messages[:len(messages):len(messages)], message{"user", words(100+i, 200)})
			if _, err := saidIn(post(e, extended)); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-CPU/median")
}

// BenchmarkConversations plays 500 conversations of 20 turns at once over loopback, with one core for the clients and
// the server. The goal is that each turn keeps the sampled tokens.
func BenchmarkConversations(b *testing.B) {
	const conversations, turns = 500, 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range b.N {
		server, err := gateway.Listen(gateway.Config{})
		if err != nil {
			b.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conversations}, Timeout: 10 * time.Minute}
		var mu sync.Mutex
		var waits []time.Duration
		began := time.Now()
		members := play(b, server, conversations, func(e *gateway.Episode) error {
			messages := []message{}
			for i := range turns {
				messages = append(messages, message{"user", words(i, 30)})
				asked := time.Now()
				said, err := send(b.Context(), client, e, messages)
				if err != nil {
					return err
				}
				messages = append(messages, said)
				mu.Lock()
				waits = append(waits, time.Since(asked))
				mu.Unlock()
			}
			return nil
		})
		took := time.Since(began)
		server.Close()
		kept := 0
		for _, m := range members {
			if len(m.Trajectories) == 1 && len(m.Trajectories[0].Segments) == 1 && m.Turns == turns {
				kept++
			}
		}
		slices.Sort(waits)
		b.ReportMetric(float64(conversations*turns)/took.Seconds(), "turns/s")
		b.ReportMetric(100*float64(kept)/conversations, "%kept")
		b.ReportMetric(float64(waits[len(waits)/2].Milliseconds()), "ms/median")
		if kept != conversations {
			b.Errorf("%d of %d conversations are one sequence", kept, conversations)
		}
	}
}

func send(ctx context.Context, client *http.Client, e *gateway.Episode, messages []message) (message, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL(dialect.OpenAI)+"/chat/completions",
		bytes.NewReader(bodyOf(messages)))
	if err != nil {
		return message{}, err
	}
	request.Header.Set("Authorization", "Bearer "+e.Token())
	response, err := client.Do(request)
	if err != nil {
		return message{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return message{}, err
	}
	return saidIn(body)
}
