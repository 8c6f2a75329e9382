// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Record is the part of an episode's record that a worker writes.
type Record struct {
	// Reason says why the episode is not usable.
	Reason        string         `json:"reason,omitempty"`
	Conversations []Conversation `json:"conversations,omitempty"`
}

// Recorder records one conversation. The zero value is ready.
type Recorder struct {
	tools    []chat.Tool
	messages []chat.Message
	// begins are the indices of messages with which a prompt begins anew.
	begins []int
	// problems are the problems of replies, by their indices in messages.
	problems map[int]string
	// rewards are the rewards of messages, by their indices.
	rewards map[int]float64
	// results is how many results of tools were recorded since the last reply.
	results int
	// broken are the causes for which a prompt did not continue the tokens before it, by the indices of the replies to
	// such prompts.
	broken map[int]string
	// finished is the number of messages up to and including the message with which the environment ended the episode; 0
	// before.
	finished int
	// seen is the last prompt with its reply.
	seen []chat.Message
}

// Prompt records a prompt: the messages that it adds to the last prompt and its reply, or all its messages if it does
// not extend the last prompt and its reply.
func (r *Recorder) Prompt(messages []chat.Message, tools []chat.Tool) {
	if len(tools) > 0 {
		r.tools = tools
	}
	added := messages
	switch {
	case len(messages) >= len(r.seen) && slices.EqualFunc(r.seen, messages[:len(r.seen)], isSame):
		added = messages[len(r.seen):]
		for r.results > 0 && len(added) > 0 && added[0].Role == chat.RoleTool {
			added, r.results = added[1:], r.results-1
		}
	default:
		r.begins = append(r.begins, len(r.messages))
	}
	r.messages = append(r.messages, added...)
	r.seen = slices.Clone(messages)
}

// BreakPrefix records the cause for which the last prompt does not continue the tokens before it. The cause is empty
// if the prompt continues them.
func (r *Recorder) BreakPrefix(cause string) {
	if cause == "" {
		return
	}
	if r.broken == nil {
		r.broken = map[int]string{}
	}
	r.broken[len(r.messages)] = cause
}

// Result is the result of a call of a tool.
type Result struct {
	Tool, Text string
	// Reward is nil for a result without a reward.
	Reward *float64
}

// Results records the results of the calls of the last reply, before the prompt that contains them. No prompt follows
// if a result or a limit ended the episode; done says that a result ended it.
func (r *Recorder) Results(results []Result, done bool) {
	r.results = len(results)
	for _, result := range results {
		r.messages = append(r.messages, chat.Message{Role: chat.RoleTool, Name: result.Tool, Content: result.Text})
		r.addReward(result.Reward)
	}
	if done {
		r.finished = len(r.messages)
	}
}

// Reward records the reward for the last message, unless the reward is nil, and whether the environment ended the
// episode with that message.
func (r *Recorder) Reward(reward *float64, done bool) {
	r.addReward(reward)
	if done {
		r.finished = len(r.messages)
	}
}

func (r *Recorder) addReward(reward *float64) {
	if reward == nil {
		return
	}
	if r.rewards == nil {
		r.rewards = map[int]float64{}
	}
	r.rewards[len(r.messages)-1] += *reward
}

// Reply records a reply of the policy: the message that the environment got, all parts of the reply, including parts
// that the environment did not get, and the problem of a reply that could not be parsed.
func (r *Recorder) Reply(given chat.Message, parts []chat.Part, problem string) {
	r.seen, r.results = append(r.seen, given), 0
	given.Parts = parts
	if problem != "" {
		if r.problems == nil {
			r.problems = map[int]string{}
		}
		r.problems[len(r.messages)] = problem
	}
	r.messages = append(r.messages, given)
}

// isSame reports whether two messages are the same for a reader.
func isSame(a, b chat.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.CallID == b.CallID && slices.Equal(a.Calls, b.Calls)
}

// conversation returns the recorded messages and tools, with texts of at most limit bytes.
func (r *Recorder) conversation(limit int) (messages []Message, tools []Tool) {
	for i, m := range r.messages {
		message := messageOf(m, limit)
		message.NewPrompt, message.Problem = i > 0 && slices.Contains(r.begins, i), cut(r.problems[i], limit)
		message.PrefixBroken = r.broken[i]
		if reward, ok := r.rewards[i]; ok {
			message.Reward = &reward
		}
		message.Finished = i+1 == r.finished
		messages = append(messages, message)
	}
	for _, t := range r.tools {
		tool := Tool{Name: t.Name, Description: cut(t.Description, limit)}
		if json.Valid(t.Parameters) && len(t.Parameters) <= limit {
			tool.Parameters = t.Parameters
		}
		tools = append(tools, tool)
	}
	return messages, tools
}

// Part is a conversation to be encoded.
type Part struct {
	Role, Key, StopReason string
	// PrefixBroken is the cause for which the conversation does not continue another one.
	PrefixBroken string
	Recorder     *Recorder
}

// maxText bounds each text of a record that has room, and minText each text of a record without room.
const (
	maxText = 32 << 10
	minText = 256
)

// Encode encodes an episode in at most the given number of bytes. If the episode is longer, texts are cut; if that
// does not suffice, messages in the middle are left out. The result is nil if that does not suffice either.
func Encode(reason string, parts []Part, bytes int) []byte {
	reason = cut(reason, minText*4)
	for limit := maxText; limit >= minText; limit /= 4 {
		if data := encode(reason, parts, limit, 0); data != nil && len(data) <= bytes {
			return data
		}
	}
	for most := 64; most > 0; most /= 4 {
		if data := encode(reason, parts, minText, most); data != nil && len(data) <= bytes {
			return data
		}
	}
	return nil
}

// encode encodes an episode with texts of at most limit bytes, and at most most messages for each conversation; 0
// keeps all messages.
func encode(reason string, parts []Part, limit, most int) []byte {
	record := Record{Reason: reason}
	for _, p := range parts {
		c := Conversation{Role: p.Role, Key: p.Key, StopReason: p.StopReason, PrefixBroken: p.PrefixBroken}
		c.Messages, c.Tools = p.Recorder.conversation(limit)
		if n := len(c.Messages); most > 0 && n > most {
			c.Omitted = fmt.Sprintf("%d messages in the middle are left out for lack of room", n-most)
			c.Messages = slices.Concat(c.Messages[:most/2], c.Messages[n-(most-most/2):])
		}
		record.Conversations = append(record.Conversations, c)
	}
	data, err := json.Marshal(record)
	if err != nil {
		return nil
	}
	return data
}
