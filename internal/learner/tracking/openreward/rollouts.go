// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package openreward turns conversations into the events that OpenReward shows as rollouts. Events have the names and
// the order of the Python package openreward.
package openreward

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Run has the values that all events of a run share.
type Run struct {
	// UID is the uid of the object, and Name the name of the run at the service.
	UID, Name string
	// Deployments are the environments that the service hosts, by their names in the run.
	Deployments map[string]Deployment
}

// Batch has the episodes that a step was trained on, and the episodes that were left out of it.
type Batch struct {
	// Version is the version that the step made.
	Version rl.Version
	Time    time.Time
	Groups  []TaskGroup
}

// TaskGroup has the episodes of a task.
type TaskGroup struct {
	transcript.Group

	Split string
	Task  int64
}

// Deployment is an environment at OpenReward.
type Deployment struct{ Name, Variant string }

// Rollout is a conversation as OpenReward shows it.
type Rollout struct {
	Start    StartEvent     `json:"start"`
	Messages []MessageEvent `json:"messages"`
}

// StartEvent begins a rollout. It has the fields of the package openreward, without fields that a run cannot know.
type StartEvent struct {
	EventID       string         `json:"eventId"`
	Timestamp     int64          `json:"timestamp"`
	RunName       string         `json:"runName"`
	Environment   string         `json:"environment"`
	EnvironmentID string         `json:"environment_id,omitempty"`
	RolloutName   string         `json:"rolloutName"`
	Variant       string         `json:"variant,omitempty"`
	VariantID     string         `json:"variant_id,omitempty"`
	Split         string         `json:"split"`
	Metadata      map[string]any `json:"metadata"`
	EventType     string         `json:"eventType"`
}

// MessageEvent adds a message to a rollout.
type MessageEvent struct {
	EventID        string         `json:"eventId"`
	Timestamp      int64          `json:"timestamp"`
	Index          int            `json:"index"`
	RolloutEventID string         `json:"rolloutEventId"`
	Type           string         `json:"type"`
	Content        string         `json:"content"`
	Name           string         `json:"name,omitempty"`
	CallID         string         `json:"callId,omitempty"`
	EnvironmentID  string         `json:"environment_id,omitempty"`
	Reward         *float64       `json:"reward,omitempty"`
	IsFinished     bool           `json:"isFinished"`
	Metadata       map[string]any `json:"metadata"`
	EventType      string         `json:"eventType"`
}

// The types of messages.
const (
	typeSystem     = "system_message"
	typeUser       = "user_message"
	typeAssistant  = "assistant_message"
	typeReasoning  = "reasoning"
	typeToolCall   = "tool_call"
	typeToolResult = "tool_result"
)

// The metrics of episodes with tools that the metadata of rollouts have.
const (
	metricToolCalls  = "tool_calls"
	metricToolErrors = "tool_errors"
)

// Rollouts returns the rollouts of a batch: one for each conversation that was recorded.
func (r Run) Rollouts(batch Batch) []Rollout {
	var rollouts []Rollout
	for _, group := range batch.Groups {
		for _, episode := range group.Episodes {
			for _, conversation := range episode.Conversations {
				if len(conversation.Messages) > 0 {
					rollouts = append(rollouts, r.rollout(batch, group, episode, conversation))
				}
			}
		}
	}
	return rollouts
}

// rollout returns a conversation as a rollout. The id of an event follows from its content, so that an event that is
// sent again has the same id.
func (r Run) rollout(batch Batch, group TaskGroup, episode transcript.Episode,
	conversation transcript.Conversation) Rollout {
	step := batch.Version.Step - 1
	w := eventWriter{
		key:  fmt.Sprintf("%s/%s/%d/%d/%s", r.UID, batch.Version.Lineage, group.Slot, episode.Index, conversation.Key),
		time: batch.Time.UnixMilli(),
	}
	name := fmt.Sprintf("%s-%s-%d-step%d-r%d", group.Environment, group.Split, group.Task, step, episode.Index)
	if conversation.Key != "" {
		name += "-" + conversation.Key
	}
	deployment, ok := r.Deployments[group.Environment]
	if !ok {
		deployment.Name = group.Environment
	}
	w.rollout.Start = StartEvent{
		EventID: w.id("start"), Timestamp: w.time, EventType: "rollout", RunName: r.Name, RolloutName: name,
		Environment: deployment.Name, Variant: deployment.Variant, Split: group.Split,
		Metadata: metadataOf(step, episode, conversation),
	}
	for _, message := range conversation.Messages {
		w.add(message)
	}
	return w.rollout
}

// metadataOf returns the metadata that the trainer of OpenReward sends, and further values of the run.
func metadataOf(step int64, episode transcript.Episode, conversation transcript.Conversation) map[string]any {
	metadata := map[string]any{
		"step": step, "rollout_idx": episode.Index, "stop": cmp.Or(conversation.StopReason, episode.StopReason),
		"outcome": episode.Outcome,
	}
	if conversation.Reward != nil {
		metadata["reward"] = *conversation.Reward
	}
	if calls, ok := episode.Metrics[metricToolCalls]; ok {
		metadata["num_tool_calls"], metadata["num_failed_tool_calls"] = calls, episode.Metrics[metricToolErrors]
		metadata["called_answer"] = 0.0
		if slices.ContainsFunc(conversation.Messages, callsAnswer) {
			metadata["called_answer"] = 1.0
		}
	}
	return metadata
}

func callsAnswer(message transcript.Message) bool {
	return slices.ContainsFunc(message.Calls, func(call transcript.Call) bool { return call.Name == "answer" })
}

// eventWriter makes the events of a rollout.
type eventWriter struct {
	rollout Rollout
	// key identifies the rollout, and time is the time of its step in milliseconds.
	key  string
	time int64
	// called are the calls of the last reply whose results have not come.
	called []string
}

// id returns the id of a part of the rollout: a UUID that follows from the part.
func (w *eventWriter) id(part string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("tinker-operator/"+w.key+"/"+part)).String()
}

// add adds the events of a message: a model's thoughts first, then its text, then its calls.
func (w *eventWriter) add(message transcript.Message) {
	text := message.Text
	switch message.Role {
	case chat.RoleAssistant:
		w.addReply(message)
		return
	case chat.RoleTool:
		event := MessageEvent{Type: typeToolResult, Content: text,
			CallID: w.id(fmt.Sprint("result/", len(w.rollout.Messages)))}
		if len(w.called) > 0 {
			event.CallID, w.called = w.called[0], w.called[1:]
		}
		w.event(event)
	case chat.RoleSystem:
		w.event(MessageEvent{Type: typeSystem, Content: text})
	default:
		w.event(MessageEvent{Type: typeUser, Content: text})
	}
	w.reward(message)
}

func (w *eventWriter) addReply(message transcript.Message) {
	w.called = nil
	if thinking := strings.TrimSpace(message.Thinking); thinking != "" {
		w.event(MessageEvent{Type: typeReasoning, Content: thinking})
	}
	if text := strings.TrimSpace(message.Text); text != "" || len(message.Calls) == 0 {
		w.event(MessageEvent{Type: typeAssistant, Content: text})
	}
	for _, call := range message.Calls {
		id := w.id(fmt.Sprint("call/", len(w.rollout.Messages)))
		w.called = append(w.called, id)
		w.event(MessageEvent{
			Type: typeToolCall, Name: cmp.Or(call.Name, "unknown"), Content: cmp.Or(strings.TrimSpace(call.Arguments), "{}"),
			CallID: id,
		})
	}
	w.reward(message)
}

// event appends an event. The service refuses the character NUL.
func (w *eventWriter) event(event MessageEvent) {
	event.Index = len(w.rollout.Messages)
	event.EventType, event.EventID, event.Timestamp = "message", w.id(fmt.Sprint("message/", event.Index)),
		w.time+int64(event.Index)
	event.RolloutEventID, event.Metadata = w.rollout.Start.EventID, map[string]any{}
	event.Content = strings.ReplaceAll(event.Content, "\x00", "")
	w.rollout.Messages = append(w.rollout.Messages, event)
}

// reward sets the environment's reward for a message in the last event.
func (w *eventWriter) reward(message transcript.Message) {
	last := &w.rollout.Messages[len(w.rollout.Messages)-1]
	last.Reward, last.IsFinished = message.Reward, message.Finished
}

// Encode encodes rollouts until they have the given number of bytes, and returns the number of rollouts that it left
// out and the number of messages of the others.
func Encode(rollouts []Rollout, bytes int) (encoded []byte, omitted, messages int, err error) {
	encoded = []byte("[")
	for i, rollout := range rollouts {
		data, err := json.Marshal(rollout)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("encoding a rollout: %w", err)
		}
		if len(encoded)+len(data) > bytes {
			omitted = len(rollouts) - i
			break
		}
		if i > 0 {
			encoded = append(encoded, ',')
		}
		encoded = append(encoded, data...)
		messages += len(rollout.Messages)
	}
	return append(encoded, ']'), omitted, messages, nil
}

// MaxRequestEvents and MaxRequestBytes bound a request with messages. A request with a single message may be larger.
const (
	MaxRequestEvents = 128
	MaxRequestBytes  = 1_000_000
)

// First returns the first messages that a request has room for, at least one.
func First(messages []MessageEvent) ([]json.RawMessage, error) {
	var events []json.RawMessage
	size := 0
	for _, message := range messages[:min(len(messages), MaxRequestEvents)] {
		encoded, err := json.Marshal(message)
		if err != nil {
			return nil, fmt.Errorf("encoding a message: %w", err)
		}
		if size += len(encoded); size > MaxRequestBytes && len(events) > 0 {
			break
		}
		events = append(events, encoded)
	}
	return events, nil
}
