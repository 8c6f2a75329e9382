// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcript has the record of an episode: messages, calls and results, rewards with their parts, judgements,
// how the episode ended, and its tokens. Workers record the messages, and the learner adds rewards, advantages and
// tokens of the group. People, trackers and programs read this record. Nothing of it is digested, and nothing is
// trained on.
package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Step has the recorded groups of one step, or of one evaluation.
type Step struct {
	// Step is the number of the version that the step made, from 1.
	Step    int64  `json:"step"`
	Lineage string `json:"lineage"`
	// SampledAt is the version that sampled the groups.
	SampledAt int64 `json:"sampledAt"`
	// Evaluation is the digest of the definition that was evaluated; it is empty for a step.
	Evaluation string `json:"evaluation,omitempty"`
	// Missing says why the step has no transcript; it is empty for one that has.
	Missing string  `json:"missing,omitempty"`
	Groups  []Group `json:"groups,omitempty"`
	// Tasks has the result of each task of an evaluation, whether its conversations are recorded or not.
	Tasks []TaskResult `json:"tasks,omitempty"`
}

// Group has the episodes of one task.
type Group struct {
	Slot        int64  `json:"slot"`
	Environment string `json:"environment"`
	// Split and Task say which task of the environment it is.
	Split   string `json:"split,omitempty"`
	Task    int64  `json:"task,omitempty"`
	Outcome string `json:"outcome"`
	// Reason says why the group is not trained on.
	Reason   string    `json:"reason,omitempty"`
	Episodes []Episode `json:"episodes,omitempty"`
	// Missing says why the group has no conversations.
	Missing string `json:"missing,omitempty"`
}

// Episode is one member of a group.
type Episode struct {
	Index   int    `json:"index"`
	Outcome string `json:"outcome"`
	// Reason says why the episode is not trained on.
	Reason string  `json:"reason,omitempty"`
	Reward float64 `json:"reward"`
	// Passed says whether a usable episode of an evaluation passes; nil for other episodes.
	Passed *bool `json:"passed,omitempty"`
	// Best is set for the usable episode of an evaluated task with the highest reward, or the first of several.
	Best          bool               `json:"best,omitempty"`
	Parts         map[string]float64 `json:"parts,omitempty"`
	Metrics       map[string]float64 `json:"metrics,omitempty"`
	StopReason    string             `json:"stopReason,omitempty"`
	Turns         int                `json:"turns,omitempty"`
	PromptTokens  int64              `json:"promptTokens,omitempty"`
	SampledTokens int64              `json:"sampledTokens,omitempty"`
	Retries       int                `json:"retries,omitempty"`
	Conversations []Conversation     `json:"conversations,omitempty"`
}

// Conversation is one trajectory of an episode.
type Conversation struct {
	Role string `json:"role,omitempty"`
	Key  string `json:"key,omitempty"`
	// PrefixBroken is the cause for which the conversation is a branch of its own and does not continue another one:
	// start, system, user, assistant, tool, repeat or fork. It is empty for the branch that begins with the fewest
	// messages, and for episodes without branches. The metric prefix_broken_CAUSE of the episode counts it.
	PrefixBroken string `json:"prefixBroken,omitempty"`
	// Reward is nil for a conversation that is not trained on.
	Reward      *float64    `json:"reward,omitempty"`
	StepRewards []float64   `json:"stepRewards,omitempty"`
	StopReason  string      `json:"stopReason,omitempty"`
	Tools       []Tool      `json:"tools,omitempty"`
	Messages    []Message   `json:"messages,omitempty"`
	Judgements  []Judgement `json:"judgements,omitempty"`
	// Segments are the sequences that are trained on.
	Segments []Segment `json:"segments,omitempty"`
	// Omitted names the messages that are left out for lack of room.
	Omitted string `json:"omitted,omitempty"`
}

// Tool is a tool that the policy could call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Message is one message of a conversation.
type Message struct {
	Role     string `json:"role"`
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text"`
	Calls    []Call `json:"calls,omitempty"`
	// Name is the name of the tool whose result the message is.
	Name string `json:"name,omitempty"`
	// Reward is the reward that the environment gave for the message; nil means no reward, which is not a reward of 0.
	Reward *float64 `json:"reward,omitempty"`
	// Finished is set if the environment ended the episode with the message.
	Finished bool `json:"finished,omitempty"`
	// Reply numbers the replies of the policy, from 1; it is 0 for other messages.
	Reply int `json:"reply,omitempty"`
	// Problem says why the reply could not be parsed.
	Problem string `json:"problem,omitempty"`
	// NewPrompt is set if the environment began the prompt anew instead of extending it.
	NewPrompt bool `json:"newPrompt,omitempty"`
	// PrefixBroken is the cause for which the prompt of a reply does not continue the tokens of the conversation although
	// it extends the messages: tools or format. The metric prefix_broken_CAUSE of the episode counts it.
	PrefixBroken string `json:"prefixBroken,omitempty"`
}

// Call is a call of a tool as the policy wrote it.
type Call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Judgement is how a judge rated one criterion, from 0 to 1.
type Judgement struct {
	Criterion string  `json:"criterion"`
	Rating    float64 `json:"rating"`
	Rationale string  `json:"rationale,omitempty"`
}

// FromGroup returns the transcript of a group, with the conversations that its worker recorded.
func FromGroup(g rl.Group) Group {
	out := Group{Slot: g.Key.Slot, Environment: g.Environment, Outcome: g.Outcome.String(), Reason: g.Reason}
	recorded := false
	for _, m := range g.Members {
		recorded = recorded || len(m.Transcript) > 0
		out.Episodes = append(out.Episodes, fromMember(m))
	}
	if !recorded {
		out.Missing = "the group's worker recorded no conversations"
	}
	return out
}

func fromMember(m rl.Member) Episode {
	e := Episode{
		Index: m.Index, Outcome: m.Outcome.String(), Reward: orZero(m.Reward), Parts: finite.Only(m.Parts),
		Metrics: finite.Only(m.Metrics), StopReason: m.StopReason, Turns: m.Turns, PromptTokens: m.PromptTokens,
		SampledTokens: m.SampledTokens, Retries: m.Retries,
	}
	var record Record
	if len(m.Transcript) > 0 && json.Unmarshal(m.Transcript, &record) == nil {
		e.Reason, e.Conversations = record.Reason, record.Conversations
	}
	for _, t := range m.Trajectories {
		c := e.conversation(t.Role, t.Key)
		c.Reward, c.StopReason = new(orZero(t.Reward)), t.StopReason
		for _, reward := range t.StepRewards {
			c.StepRewards = append(c.StepRewards, orZero(reward))
		}
		for _, s := range t.Segments {
			c.Segments = append(c.Segments, segmentOf(s))
		}
		for _, j := range t.Judgements {
			c.Judgements = append(c.Judgements, Judgement{Criterion: j.Criterion, Rating: j.Rating, Rationale: j.Rationale})
		}
	}
	return e
}

// conversation returns the conversation of a trajectory, which it adds if no worker recorded it.
func (e *Episode) conversation(role, key string) *Conversation {
	for i := range e.Conversations {
		if e.Conversations[i].Key == key {
			return &e.Conversations[i]
		}
	}
	e.Conversations = append(e.Conversations, Conversation{Role: role, Key: key})
	return &e.Conversations[len(e.Conversations)-1]
}

// messageOf returns a message as it is recorded, with texts of at most limit bytes.
func messageOf(m chat.Message, limit int) Message {
	out := Message{Role: m.Role, Name: cut(m.Name, limit), Reply: m.Reply}
	var text, thinking strings.Builder
	for _, part := range m.AllParts() {
		if part.Thinking {
			thinking.WriteString(part.Text)
		} else {
			text.WriteString(part.Text)
		}
	}
	out.Text, out.Thinking = cut(text.String(), limit), cut(thinking.String(), limit)
	for _, call := range m.Calls {
		out.Calls = append(out.Calls, Call{Name: cut(call.Name, limit), Arguments: cut(call.Arguments, limit)})
	}
	return out
}

// cut returns at most limit bytes of text, as valid UTF-8. If it leaves out bytes, it adds a note of their number.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	kept := strings.ToValidUTF8(text[:limit], "")
	return fmt.Sprintf("%s… (%d bytes are left out)", kept, len(text)-len(kept))
}

// Failed removes the episodes that pass, the groups without other episodes, and the tasks whose samples all pass. An
// episode without Passed passes if its reward is above 0, and a task that is not Judged if its mean reward is above
// 0.
func (s *Step) Failed() {
	s.Tasks = slices.DeleteFunc(slices.Clone(s.Tasks), func(r TaskResult) bool {
		return r.Samples > 0 && (r.Judged && r.Passed == r.Samples || !r.Judged && r.Reward > 0)
	})
	var groups []Group
	for _, g := range s.Groups {
		g.Episodes = slices.DeleteFunc(slices.Clone(g.Episodes), func(e Episode) bool {
			if e.Passed != nil {
				return *e.Passed
			}
			return e.Reward > 0
		})
		if len(g.Episodes) > 0 {
			groups = append(groups, g)
		}
	}
	s.Groups = groups
}
