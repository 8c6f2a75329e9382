// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"context"
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// episode is an episode of one task. It has one conversation, whose key is "".
type episode struct {
	session  Session
	options  Options
	messages []chat.Message
	tools    []chat.Tool
	// last is the last reply; it is nil before the first.
	last *environment.Reply
	// The counts are totals of the episode so far, except consecutive: it counts the parse errors since the last reply
	// without one.
	turns, toolCalls, toolErrors, parseErrors, consecutive int
}

// Prompts implements environment.Episode.
func (e *episode) Prompts(ctx context.Context) ([]environment.Prompt, error) {
	messages, err := e.session.Messages(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := e.session.Tools(ctx)
	if err != nil {
		return nil, err
	}
	e.messages, e.tools = e.options.opening(messages, tools)
	return e.prompts(), nil
}

// prompts asks for the next reply. It copies the messages, since the episode appends to its own.
func (e *episode) prompts() []environment.Prompt {
	return []environment.Prompt{{Messages: append([]chat.Message(nil), e.messages...), Tools: e.tools}}
}

// Step implements environment.Episode. A reply that a token limit cut ends the episode, like an answer.
func (e *episode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if len(replies) != 1 {
		err := fmt.Errorf("one reply was asked for, %d were given", len(replies))
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: err}
	}
	reply := replies[0]
	e.last = &reply
	e.turns++
	e.messages = append(e.messages, reply.Message)
	if reply.Malformed != "" {
		return e.handleParseError(ctx, reply)
	}
	e.consecutive = 0
	if len(reply.Message.Calls) > 0 && !reply.Truncated {
		calls := reply.Message.Calls
		if reply.MaxCalls > 0 {
			calls = calls[:min(len(calls), reply.MaxCalls)]
		}
		return e.call(ctx, calls)
	}
	outcome, err := e.session.Answer(ctx, reply)
	if err != nil {
		return environment.Turn{}, err
	}
	return e.proceed(outcome), nil
}

// handleParseError describes the defect of a reply to the policy, or ends the episode if there were too many such
// replies in a row. It runs none of the reply's calls, as the policy may have meant others.
func (e *episode) handleParseError(ctx context.Context, reply environment.Reply) (environment.Turn, error) {
	e.parseErrors++
	e.consecutive++
	var turn environment.Turn
	if e.consecutive > e.options.MaxParseErrors {
		outcome, err := e.session.Finish(ctx, &reply)
		if err != nil {
			return environment.Turn{}, err
		}
		turn = e.end(outcome)
		turn.Abandoned = len(outcome.Rewards) == 0 && outcome.Ungraded == nil
	} else {
		turn = e.proceed(Outcome{Text: "Error: " + reply.Malformed + ". No tool was called. Please write the message again."})
	}
	if e.options.MaskParseErrors {
		turn.Masked = []string{""}
	}
	return turn, nil
}

// call runs calls in their order and passes their results to the policy. It stops at a call that ends the episode.
func (e *episode) call(ctx context.Context, calls []chat.ToolCall) (environment.Turn, error) {
	var rewards []environment.Reward
	var results []environment.ToolResult
	metrics := map[string]float64{}
	for i, call := range calls {
		result, err := e.session.Call(ctx, call)
		if err != nil {
			return environment.Turn{}, err
		}
		e.toolCalls++
		if result.Invalid {
			e.toolErrors++
		}
		rewards = append(rewards, result.Rewards...)
		results = append(results, environment.ToolResult{Tool: call.Name, Text: result.Text, Reward: sumOf(result.Rewards)})
		maps.Copy(metrics, result.Metrics)
		if result.Done {
			turn := e.end(Outcome{Rewards: rewards, Metrics: metrics})
			turn.ToolCalls, turn.Results, turn.Finished = i+1, results, true
			return turn, nil
		}
		e.messages = append(e.messages, chat.Message{Role: "tool", Content: result.Text, CallID: call.ID, Name: call.Name})
	}
	return environment.Turn{
		Rewards: rewards, Metrics: e.metrics(metrics), ToolCalls: len(calls), Results: results, Prompts: e.prompts(),
	}, nil
}

// sumOf returns the sum of rewards, or nil if there are none.
func sumOf(rewards []environment.Reward) *float64 {
	if len(rewards) == 0 {
		return nil
	}
	var sum float64
	for _, reward := range rewards {
		sum += reward.Value
	}
	return &sum
}

// proceed continues with the text of the outcome, or ends the episode if the outcome has no text.
func (e *episode) proceed(outcome Outcome) environment.Turn {
	if outcome.Text == "" {
		return e.end(outcome)
	}
	e.messages = append(e.messages, chat.Message{Role: "user", Content: outcome.Text})
	return environment.Turn{Rewards: outcome.Rewards, Metrics: e.metrics(outcome.Metrics), Prompts: e.prompts()}
}

func (e *episode) end(outcome Outcome) environment.Turn {
	return environment.Turn{
		Rewards: outcome.Rewards, Metrics: e.metrics(outcome.Metrics), Ungraded: outcome.Ungraded, Done: true,
	}
}

// metrics returns the metrics of the episode so far, together with the metrics of the backend. Metrics of the episode
// take precedence.
func (e *episode) metrics(own map[string]float64) map[string]float64 {
	all := map[string]float64{}
	maps.Copy(all, own)
	all[MetricTurns], all[MetricParseErrors] = float64(e.turns), float64(e.parseErrors)
	all[MetricToolCalls], all[MetricToolErrors] = float64(e.toolCalls), float64(e.toolErrors)
	return all
}

// Finish implements environment.Episode.
func (e *episode) Finish(ctx context.Context) (environment.Turn, error) {
	outcome, err := e.session.Finish(ctx, e.last)
	if err != nil {
		return environment.Turn{}, err
	}
	return e.end(outcome), nil
}

// Close implements environment.Episode.
func (e *episode) Close(ctx context.Context) { e.session.Close(ctx) }

var _ environment.Episode = (*episode)(nil)
