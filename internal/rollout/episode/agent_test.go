// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// agentOf returns an environment whose episodes are played by an agent.
func agentOf(run func(ctx context.Context, policy environment.AgentPolicy) (environment.Turn, error)) program {
	return func(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
		return run(ctx, policy.(environment.AgentPolicy))
	}
}

// user is a user's message.
func user(text string) chat.Message { return chat.Message{Role: chat.RoleUser, Content: text} }

// say asks for the reply to messages, and returns the messages with the reply.
func say(ctx context.Context, policy environment.AgentPolicy, role string,
	messages ...chat.Message) ([]chat.Message, error) {
	out, err := policy.Complete(ctx, environment.Completion{Role: role, Messages: messages})
	return append(messages[:len(messages):len(messages)], out.Message), err
}

// changed returns messages as they come back from an agent that takes replies apart and writes them anew.
func changed(messages []chat.Message) []chat.Message {
	var list []chat.Message
	for _, m := range messages {
		m.Content, m.Parts, m.Thinking = " "+saidBy(m)+"\r\n", nil, ""
		list = append(list, m)
	}
	return list
}

// TestAgentContinuesItsConversation plays an agent that sends back its replies with other white space: its requests,
// and the training data, equal the requests and data of a program that sends replies back unchanged.
func TestAgentContinuesItsConversation(t *testing.T) {
	want := &seeded{}
	plain := play(t, program(func(ctx context.Context, p environment.Policy) (environment.Turn, error) {
		return done(1), talk(ctx, p, "", "", 4)
	}), want, singleMember(nil))
	got := &seeded{}
	agent := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		messages := []chat.Message{user("q")}
		for range 4 {
			var err error
			if messages, err = say(ctx, p, "", messages...); err != nil {
				return environment.Turn{}, err
			}
			messages = append(changed(messages), user("and?"))
		}
		return done(1), nil
	}), got, singleMember(nil))
	if diff := cmp.Diff(want.numbers(), got.numbers()); diff != "" {
		t.Errorf("the numbers of requests (-program +agent):\n%s", diff)
	}
	if diff := cmp.Diff(plain.Members[0].Trajectories, agent.Members[0].Trajectories); diff != "" {
		t.Errorf("training data (-program +agent):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"branches": 1}, agent.Members[0].Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// team plays three sub-agents at once, two of them with the same first prompt, then forks a conversation, and ends
// with another conversation that has a summary of the first.
func team(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
	together, working := errgroup.WithContext(ctx)
	for _, first := range []string{"a", "b", "b"} {
		together.Go(func() error {
			messages, err := say(working, p, "", user(first))
			if err != nil {
				return err
			}
			_, err = say(working, p, "", append(messages, user("and?"))...)
			return err
		})
	}
	if err := together.Wait(); err != nil {
		return environment.Turn{}, err
	}
	main, err := say(ctx, p, "", user("plan"))
	if err != nil {
		return environment.Turn{}, err
	}
	for range 2 { // The same is asked twice, and is sampled twice.
		if _, err := say(ctx, p, "", append(main, user("try"))...); err != nil {
			return environment.Turn{}, err
		}
	}
	_, err = say(ctx, p, "", user("plan"), user("summary: "+saidBy(main[1])))
	return done(1), err
}

// TestAgentDoesNotDependOnTheOrderOfReplies plays an agent with replies that come in other orders.
func TestAgentDoesNotDependOnTheOrderOfReplies(t *testing.T) {
	played := func(order int) (group rl.Group, numbers []int64) {
		synctest.Test(t, func(t *testing.T) {
			policy := &seeded{}
			slow := policyFunc(func(ctx context.Context, request Request) (Sample, error) {
				took := time.Duration((int(request.Content[0])*7+request.Repeat*5)*order%13) * time.Second
				if err := wait.Sleep(ctx, took); err != nil {
					return Sample{}, err
				}
				return policy.Sample(ctx, request)
			})
			group = play(t, agentOf(team), slow, game(nil))
			numbers = policy.numbers()
		})
		return group, numbers
	}
	want, numbers := played(0)
	member := want.Members[0]
	var turns []int
	for _, trajectory := range member.Trajectories {
		turns = append(turns, repliesIn(trajectory.Segments[0].Actions))
	}
	slices.Sort(turns)
	if len(numbers) != 20 || want.Outcome != rl.Usable || !slices.Equal(turns, []int{1, 1, 2, 2, 2, 2}) {
		t.Fatalf("%d requests, outcome %v (%s), turns %v", len(numbers), want.Outcome, want.Reason, turns)
	}
	metrics := map[string]float64{"branches": 6, "prefix_broken_fork": 1, "prefix_broken_repeat": 1,
		"prefix_broken_start": 2, "prefix_broken_user": 1}
	if diff := cmp.Diff(metrics, member.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	for order := 1; order < 13; order++ {
		got, others := played(order)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order %d: the group (-one order +the other):\n%s", order, diff)
		}
		if diff := cmp.Diff(numbers, others); diff != "" {
			t.Errorf("order %d: the numbers of requests (-one order +the other):\n%s", order, diff)
		}
	}
}

// TestAgentTrainsOnTheLastBranch plays an agent that summarises its conversation, and trains on the replies after that.
func TestAgentTrainsOnTheLastBranch(t *testing.T) {
	policy := &seeded{}
	group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		_, err := say(ctx, p, "", user("long"))
		_, err2 := say(ctx, p, "", user("short"))
		return environment.Turn{Done: true, OnlyLast: true, Rewards: []environment.Reward{{Value: 1}}}, errors.Join(err, err2)
	}), policy, singleMember(nil))
	m := group.Members[0]
	if len(m.Trajectories) != 1 || m.Turns != 2 || m.Metrics["branches"] != 2 {
		t.Fatalf("%d trajectories of %d replies, metrics %v: want the last of two", len(m.Trajectories), m.Turns, m.Metrics)
	}
	if got, want := m.Trajectories[0].Segments[0].Tokens, policy.requests[1].Prompt; !hasPrefix(got, want) {
		t.Errorf("the training data is %v, want it to begin with %v", got, want)
	}
}

// TestAgentsLastReply checks which reply is the last, and that Last fails if another request was open at the same
// time.
func TestAgentsLastReply(t *testing.T) {
	var said string
	play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		together, working := errgroup.WithContext(ctx)
		for _, first := range []string{"a", "b"} {
			together.Go(func() error {
				_, err := say(working, p, "", user(first))
				return err
			})
		}
		if err := together.Wait(); err != nil {
			return environment.Turn{}, err
		}
		messages, err := say(ctx, p, "", user("c"))
		if err != nil {
			return environment.Turn{}, err
		}
		last, err := p.Last()
		if said = last.Message.Content; said != messages[1].Content {
			t.Errorf("the last reply is %q, want %q", said, messages[1].Content)
		}
		return done(1), err
	}), &seeded{}, singleMember(nil))
	group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		together, working := errgroup.WithContext(ctx)
		for _, first := range []string{"a", "b"} {
			together.Go(func() error {
				_, err := say(working, p, "", user(first))
				return err
			})
		}
		if err := together.Wait(); err != nil {
			return environment.Turn{}, err
		}
		_, err := p.Last()
		return done(1), err
	}), atOnce(2, &seeded{}), singleMember(nil))
	if want := "while another was open"; !strings.Contains(group.Reason, want) {
		t.Errorf("two requests at once: %q, want %q", group.Reason, want)
	}
}

// atOnce returns a policy that answers only when count requests are open.
func atOnce(count int, policy Policy) policyFunc {
	arrived, all := make(chan struct{}, count), make(chan struct{})
	go func() {
		for range count {
			<-arrived
		}
		close(all)
	}()
	return func(ctx context.Context, request Request) (Sample, error) {
		arrived <- struct{}{}
		select {
		case <-all:
		case <-ctx.Done():
			return Sample{}, ctx.Err()
		}
		return policy.Sample(ctx, request)
	}
}

// TestLimitsOfAgents checks that limits forbid requests.
func TestLimitsOfAgents(t *testing.T) {
	cases := map[string]struct {
		limit     func(*contract.Environment)
		firsts    []string
		turns     int
		wantLimit environment.LimitError
		want      rl.Outcome
	}{
		"replies of a conversation": {func(e *contract.Environment) { e.Limits.Turns = 2 }, []string{"q"}, 3,
			environment.LimitError{Limit: "turns"}, rl.Usable},
		"a first prompt": {func(e *contract.Environment) { e.Limits.PromptTokens = 30 },
			[]string{"q", strings.Repeat("q", 40)}, 1, environment.LimitError{Limit: "prompt_tokens", Tokens: 58, Most: 30},
			rl.Usable},
		"requests of one branch": {func(e *contract.Environment) { e.Limits.Requests = 2 }, []string{"q"}, 3,
			environment.LimitError{Limit: "requests"}, rl.Usable},
		"requests of several branches": {func(e *contract.Environment) { e.Limits.Requests = 3 }, []string{"q", "r"}, 2,
			environment.LimitError{Limit: "requests"}, rl.Deadline},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *environment.LimitError
			group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
				for _, first := range tc.firsts {
					messages := []chat.Message{user(first)}
					for range tc.turns {
						var err error
						if messages, err = say(ctx, p, "", messages...); errors.As(err, &got) {
							break
						}
						messages = append(messages, user("and?"))
					}
				}
				return done(1), nil // The agent goes on, and ends by itself.
			}), &seeded{}, singleMember(tc.limit))
			if got == nil {
				t.Fatal("no limit was reached")
			}
			if diff := cmp.Diff(tc.wantLimit, *got); diff != "" {
				t.Errorf("the limit (-want +got):\n%s", diff)
			}
			if m := group.Members; group.Outcome != tc.want || tc.want == rl.Usable && m[0].Reward != 1 {
				t.Errorf("outcome %v (%s), want %v", group.Outcome, group.Reason, tc.want)
			}
		})
	}
}

// TestAgentAsksForLess requests a reply with stop texts and a number of tokens. The reply is cut there, and its tokens
// up to the cut are trained on.
func TestAgentAsksForLess(t *testing.T) {
	group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		out, err := p.Complete(ctx, environment.Completion{Messages: []chat.Message{user("q")}, Stop: []string{"x", "lo w"},
			Logprobs: true})
		if err != nil {
			return environment.Turn{}, err
		}
		if out.Message.Content != "hel" || out.StopText != "lo "+
			"w" || out.Truncated || strings.Join(out.Texts, "") != "hello w" {
			t.Errorf("the reply is %q, ended by %q, with the tokens %q", out.Message.Content, out.StopText, out.Texts)
		}
		_, err = say(ctx, p, "", user("q"), out.Message, user("and?"))
		return done(1), err
	}), policyFunc(func(_ context.Context, request Request) (Sample, error) {
		return sampled("hello world"), nil
	}), singleMember(nil))
	segments := segmentsOf(group.Members[0])
	if len(segments) != 1 || repliesIn(segments[0].Actions) != 2 {
		t.Fatalf("segments are %v, want one with two replies", segments)
	}
	actions := segments[0].Actions[slices.Index(segments[0].Actions, true):]
	if got, want := slices.Index(actions, false), len("hello w"); got != want {
		t.Errorf("%d tokens of the first reply are trained on, want %d", got, want)
	}
	var asked int32
	play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		_, err := p.Complete(ctx, environment.Completion{Messages: []chat.Message{user("q")}, MaxTokens: 5})
		return done(1), err
	}), policyFunc(func(_ context.Context, request Request) (Sample, error) {
		asked = request.Sampling.MaxTokens
		return sampled("hello"), nil
	}), singleMember(nil))
	if asked != 5 {
		t.Errorf("the request has %d tokens, want 5", asked)
	}
}

// TestRawPromptsOfAgents plays an agent that continues texts and tokens: sampled tokens stay the same.
func TestRawPromptsOfAgents(t *testing.T) {
	for _, tokens := range []bool{false, true} {
		group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
			asked := environment.Completion{Raw: true, Text: "once", MaxTokens: 8}
			if tokens {
				asked.Tokens = bytesOf("once")
			}
			for range 3 {
				out, err := p.Complete(ctx, asked)
				if err != nil {
					return environment.Turn{}, err
				}
				if out.Text != " upon" || out.PromptText != asked.Text && !tokens {
					t.Errorf("the reply to %q is %q after %q", asked.Text, out.Text, out.PromptText)
				}
				asked.Text += out.Text + " a"
				if tokens {
					asked.Tokens = append(append(asked.Tokens, out.Tokens...), bytesOf(" a")...)
				}
			}
			return done(1), nil
		}), policyFunc(func(context.Context, Request) (Sample, error) {
			cut := sampled(" upon")
			return Sample{Tokens: cut.Tokens[:5], Logprobs: cut.Logprobs[:5]}, nil
		}), singleMember(nil))
		segments := segmentsOf(group.Members[0])
		if len(segments) != 1 || repliesIn(segments[0].Actions) != 3 {
			t.Errorf("tokens %v: segments are %v, want one with three replies", tokens, segments)
		}
	}
}

// playScript plays a group of one agent in the format of Qwen3, with the replies of a script in their order.
func playScript(t *testing.T, env environment.Environment, policy *script) rl.Group {
	t.Helper()
	turn := 0
	sample := policyFunc(func(ctx context.Context, request Request) (Sample, error) {
		request.Turn, turn = turn, turn+1
		return policy.Sample(ctx, request)
	})
	p := &Player{Environment: env, Renderer: rendererOf(t, "qwen3", policy.tokens), Policy: sample, Gate: open{},
		Progress: &Progress{}}
	group, err := p.Play(t.Context(), singleMember(nil))
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestAgentsCallsAreTheSampledOnes plays an agent that rewrites the arguments of calls and gives the calls other IDs.
// The conversation continues with the tokens that were sampled.
func TestAgentsCallsAreTheSampledOnes(t *testing.T) {
	const call = "<think>\nI had better ask.\n</think>\n\n<tool_call>\n{\"name\":\"add\",\"arguments\":{\"b\":2.0, " +
		" \"a\":1}}" +
		"\n</tool_call>"
	tokens := qwen3(t)
	policy := &script{tokens: tokens, replies: []string{call, call, "3"}}
	env := agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		tools := []chat.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
		messages, ids := []chat.Message{user("1+2?")}, map[string]bool{}
		for range 3 {
			out, err := p.Complete(ctx, environment.Completion{Messages: messages, Tools: tools})
			if err != nil {
				return environment.Turn{}, err
			}
			m := chat.Message{Role: chat.RoleAssistant, Content: saidBy(out.Message)}
			results := []chat.Message{}
			for i, c := range out.Message.Calls {
				if c.ID == "" || ids[c.ID] {
					t.Errorf("the ID of a call is %q, want one of its own", c.ID)
				}
				ids[c.ID] = true
				id := fmt.Sprintf("mine-%d-%d", len(messages), i)
				m.Calls = append(m.Calls, chat.ToolCall{ID: id, Name: c.Name, Arguments: `{"a": 1.0, "b": 2}`})
				results = append(results, chat.Message{Role: chat.RoleTool, CallID: id, Content: "3"})
			}
			messages = append(append(messages, m), results...)
		}
		return done(1), nil
	})
	group := playScript(t, env, policy)
	m := group.Members[0]
	if segments := segmentsOf(m); len(segments) != 1 || repliesIn(segments[0].Actions) != 3 || m.Metrics["branches"] != 1 {
		t.Errorf("%d segments, metrics %v (%s), want one segment of three replies; the last prompt is\n%s", len(segments),
			m.Metrics, group.Reason, policy.prompts[len(policy.prompts)-1])
	}
}

// TestAgentThatLeavesARequestOpen plays an agent that ends while a request is open.
func TestAgentThatLeavesARequestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
			go say(ctx, p, "", user("q"))
			synctest.Wait()
			return done(1), nil
		}), policyFunc(func(ctx context.Context, _ Request) (Sample, error) {
			<-ctx.Done()
			return Sample{}, ctx.Err()
		}), singleMember(nil))
		if want := "while a request was open"; !strings.Contains(group.Reason, want) {
			t.Errorf("reason is %q, want %q", group.Reason, want)
		}
	})
}

// TestInterruptedAgentsAreTheSameTry plays an episode that outages interrupt, and checks that each play makes the same
// requests, which are answered with the same samples.
func TestInterruptedAgentsAreTheSameTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times, policy := 0, &seeded{}
		var said []string
		p := newPlayer(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
			messages, err := say(ctx, p, "", user("q"))
			if err != nil {
				return environment.Turn{}, err
			}
			said = append(said, messages[1].Content)
			if times++; times < 4 {
				return environment.Turn{}, &environment.Fault{Interrupted: true, Err: errors.New("outage")}
			}
			_, err = say(ctx, p, "", append(messages, user("and?"))...)
			return done(1), err
		}), policy)
		group, err := p.Play(t.Context(), singleMember(func(e *contract.Environment) { e.Retries = 0 }))
		if err != nil {
			t.Fatal(err)
		}
		if len(policy.numbers()) != 2 || len(said) != 4 || said[0] != said[3] || group.Members[0].Retries != 0 ||
			group.Outcome != rl.Usable {
			t.Errorf("%d requests, replies %q, group %v (%s), want two requests and no fault", len(policy.numbers()), said,
				group.Outcome, group.Reason)
		}
		if got, want := group.PromptTokens, group.Members[0].PromptTokens; got != want {
			t.Errorf("%d prompt tokens were paid for, want %d", got, want)
		}
	})
}

// TestAgentThatIsInterruptedForEver checks that an agent that is always interrupted is a fault in the end.
func TestAgentThatIsInterruptedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := play(t, agentOf(func(context.Context, environment.AgentPolicy) (environment.Turn, error) {
			return environment.Turn{}, &environment.Fault{Interrupted: true, Err: errors.New("it left")}
		}), &seeded{}, singleMember(nil))
		if group.Outcome != rl.EnvironmentFault || !strings.Contains(group.Reason, "it left") {
			t.Errorf("group %v (%s), want a fault", group.Outcome, group.Reason)
		}
	})
}
