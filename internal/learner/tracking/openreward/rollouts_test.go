// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package openreward

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// rolloutOf returns the rollout of a conversation with the messages.
func rolloutOf(messages ...transcript.Message) Rollout {
	group := TaskGroup{Group: transcript.Group{Environment: "e", Episodes: []transcript.Episode{{
		Conversations: []transcript.Conversation{{Messages: messages}},
	}}}}
	return Run{UID: "u"}.Rollouts(Batch{Version: rl.Version{Step: 1, Lineage: rl.Genesis("x")}, Time: time.Unix(1000, 0),
		Groups: []TaskGroup{group}})[0]
}

// TestFirst checks how many messages a request takes: at most 128 events and a million bytes, but at least one
// message.
func TestFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		text           string
		messages, want int
	}{
		"many messages":           {"x", 300, 128},
		"long messages":           {strings.Repeat("x", 99_000), 50, 10},
		"one message that is big": {strings.Repeat("x", 3_000_000), 2, 1},
		"few":                     {"x", 3, 3},
	} {
		messages := make([]transcript.Message, tc.messages)
		for i := range messages {
			messages[i] = transcript.Message{Role: "user", Text: tc.text}
		}
		events, err := First(rolloutOf(messages...).Messages)
		if err != nil || len(events) != tc.want {
			t.Errorf("%s: a request has %d messages (%v), want %d", name, len(events), err, tc.want)
		}
	}
}

// TestEncodeLeavesOutWhatHasNoRoom checks that the first rollouts are kept whole, and others are left out.
func TestEncodeLeavesOutWhatHasNoRoom(t *testing.T) {
	rollout := rolloutOf(transcript.Message{Role: "user", Text: strings.Repeat("x", 400)})
	encoded, omitted, messages, err := Encode([]Rollout{rollout, rollout, rollout}, 2000)
	var kept []Rollout
	if err := json.Unmarshal(encoded, &kept); err != nil {
		t.Fatal(err)
	}
	if err != nil || omitted != 1 || messages != 2 || len(kept) != 2 || len(encoded) > 2000+1 {
		t.Errorf("%d rollouts with %d messages in %d bytes are kept, and %d left out (%v)", len(kept), messages, len(encoded),
			omitted, err)
	}
}

// TestCallsAndResults checks that results are paired with the calls of their reply, although a limit left one call
// without a result, and that events have the same ids when they are made again.
func TestCallsAndResults(t *testing.T) {
	call := transcript.Message{Role: "assistant",
		Calls: []transcript.Call{{Name: "a"}, {Name: "b", Arguments: `{"x": 1}`}}}
	messages := []transcript.Message{call, {Role: "tool", Text: "1"}, call, {Role: "tool", Text: "3"}}
	got, again := rolloutOf(messages...), rolloutOf(messages...)
	var types []string
	ids := map[string]bool{got.Start.EventID: true}
	for i, event := range got.Messages {
		types = append(types, event.Type+" "+event.Content)
		if ids[event.EventID] = true; event.EventID != again.Messages[i].EventID || event.CallID != again.Messages[i].CallID {
			t.Errorf("the event %d has other ids when it is made again", i)
		}
	}
	want := `tool_call {},tool_call {"x": 1},tool_result 1,tool_call {},tool_call {"x": 1},tool_result 3`
	if joined := strings.Join(types, ","); joined != want || len(ids) != 7 {
		t.Errorf("the events are %s with %d ids, want %s with 7", joined, len(ids), want)
	}
	for result, call := range map[int]int{2: 0, 5: 3} {
		if got.Messages[result].CallID != got.Messages[call].CallID {
			t.Errorf("the result %d does not belong to the call %d", result, call)
		}
	}
}
