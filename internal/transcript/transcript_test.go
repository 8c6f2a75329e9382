// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func user(text string) chat.Message { return chat.Message{Role: chat.RoleUser, Content: text} }

func decoded(t *testing.T, data []byte) Record {
	t.Helper()
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	return record
}

func TestRecorder(t *testing.T) {
	var r Recorder
	r.Prompt([]chat.Message{user("a")}, []chat.Tool{{Name: "add"}})
	reply := chat.Message{Role: chat.RoleAssistant, Content: "b", Reply: 1}
	r.Reply(reply, []chat.Part{{Text: "hm", Thinking: true}, {Text: "b"}}, "a call is not JSON")
	r.Prompt([]chat.Message{user("a"), reply, user("c")}, nil)
	r.Reply(chat.Message{Role: chat.RoleAssistant, Content: "d", Reply: 2}, nil, "")
	r.Prompt([]chat.Message{user("new")}, nil)
	want := Record{Conversations: []Conversation{{Key: "k", Tools: []Tool{{Name: "add"}}, Messages: []Message{
		{Role: "user", Text: "a"}, {Role: "assistant", Thinking: "hm", Text: "b", Reply: 1, Problem: "a call is not JSON"},
		{Role: "user", Text: "c"}, {Role: "assistant", Text: "d", Reply: 2}, {Role: "user", Text: "new", NewPrompt: true},
	}}}}
	if diff := cmp.Diff(want, decoded(t, Encode("", []Part{{Key: "k", Recorder: &r}}, 1<<20))); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// TestRecorderOfResults records results of tools. The last result ended the episode, so that no prompt has it.
func TestRecorderOfResults(t *testing.T) {
	var r Recorder
	call := chat.Message{Role: chat.RoleAssistant, Calls: []chat.ToolCall{{Name: "look"}, {Name: "submit"}}, Reply: 1}
	r.Prompt([]chat.Message{user("a")}, nil)
	r.Reply(call, nil, "")
	r.Results([]Result{{Tool: "look", Text: "x", Reward: new(0.0)}, {Tool: "submit", Text: "y"}}, false)
	result := func(name, text string) chat.Message {
		return chat.Message{Role: chat.RoleTool, Name: name, Content: text}
	}
	r.Prompt([]chat.Message{user("a"), call, result("look", "x"), result("submit", "y")}, nil)
	r.Reply(call, nil, "")
	r.Results([]Result{{Tool: "look", Text: "x"}, {Tool: "submit", Text: "Correct!", Reward: new(1.0)}}, true)
	reply := Message{Role: "assistant", Reply: 1, Calls: []Call{{Name: "look"}, {Name: "submit"}}}
	want := []Message{
		{Role: "user", Text: "a"}, reply, {Role: "tool", Name: "look", Text: "x", Reward: new(0.0)},
		{Role: "tool", Name: "submit", Text: "y"},
		reply, {Role: "tool", Name: "look", Text: "x"}, {Role: "tool", Name: "submit", Text: "Correct!", Reward: new(1.0),
			Finished: true},
	}
	if diff := cmp.Diff(want, decoded(t, Encode("", []Part{{Recorder: &r}},
		1<<20)).Conversations[0].Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestRecorderKeepsResultsThatOnlyPromptsHave records results of an environment that reports them only in its prompts.
func TestRecorderKeepsResultsThatOnlyPromptsHave(t *testing.T) {
	var r Recorder
	call, result := chat.Message{Role: chat.RoleAssistant, Calls: []chat.ToolCall{{Name: "look"}}, Reply: 1},
		chat.Message{Role: chat.RoleTool, Content: "x"}
	r.Prompt([]chat.Message{user("a")}, nil)
	r.Reply(call, nil, "")
	r.Prompt([]chat.Message{user("a"), call, result, user("b")}, nil)
	var got []string
	for _, m := range decoded(t, Encode("", []Part{{Recorder: &r}}, 1<<20)).Conversations[0].Messages {
		got = append(got, m.Role+" "+m.Text)
	}
	if diff := cmp.Diff([]string{"user a", "assistant ", "tool x", "user b"}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestRecorderMarksPromptsThatBeginAnew records prompts that repeat the last prompt and its reply, that have other
// texts, or that have fewer results.
func TestRecorderMarksPromptsThatBeginAnew(t *testing.T) {
	reply := chat.Message{Role: chat.RoleAssistant, Content: "b", Reply: 1}
	for name, tc := range map[string]struct {
		prompt []chat.Message
		anew   bool
	}{
		"the same messages":        {prompt: []chat.Message{user("a"), reply}},
		"another text":             {prompt: []chat.Message{user("a"), user("b"), user("c")}, anew: true},
		"another text of one role": {prompt: []chat.Message{user("x"), reply, user("c")}, anew: true},
		"a text that is added":     {prompt: []chat.Message{user("a"), reply, user("c")}},
		"one of two results":       {prompt: []chat.Message{user("a"), reply, {Role: chat.RoleTool, Content: "r"}}},
	} {
		var r Recorder
		r.Prompt([]chat.Message{user("a")}, nil)
		r.Reply(reply, nil, "")
		r.Results([]Result{{Tool: "t", Text: "r"}, {Tool: "t", Text: "s"}}, false)
		r.Prompt(tc.prompt, nil)
		anew := false
		for _, m := range decoded(t, Encode("", []Part{{Recorder: &r}}, 1<<20)).Conversations[0].Messages {
			anew = anew || m.NewPrompt
		}
		if anew != tc.anew {
			t.Errorf("%s: the prompt begins anew: %v, want %v", name, anew, tc.anew)
		}
	}
}

// TestTextsAreCutBehindTheirLimit checks that a text is cut only if it is longer than its limit.
func TestTextsAreCutBehindTheirLimit(t *testing.T) {
	for text, want := range map[string]string{"abc": "abc", "abcd": "abc… (1 bytes are left out)",
		"abé": "ab… (2 bytes are left out)"} {
		if got := cut(text, 3); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}

// TestEncodeLeavesOutParametersOfTools encodes tools whose parameters are not JSON, or are too long.
func TestEncodeLeavesOutParametersOfTools(t *testing.T) {
	var r Recorder
	r.Prompt([]chat.Message{user("a")}, []chat.Tool{
		{Name: "short", Parameters: []byte(`{"type":"object"}`)}, {Name: "broken", Parameters: []byte(`{`)},
		{Name: "long", Parameters: []byte(`"` + strings.Repeat("x", 64<<10) + `"`)},
	})
	want := []Tool{{Name: "short", Parameters: []byte(`{"type":"object"}`)}, {Name: "broken"}, {Name: "long"}}
	if diff := cmp.Diff(want, decoded(t, Encode("", []Part{{Recorder: &r}}, 1<<20)).Conversations[0].Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// TestEncodeOmitsNoMessageThatFits encodes as many messages as are kept if there is little room, and one more.
func TestEncodeOmitsNoMessageThatFits(t *testing.T) {
	var r Recorder
	var messages []chat.Message
	for range 64 {
		messages = append(messages, user("a"))
	}
	r.Prompt(messages, nil)
	for most, omitted := range map[int]bool{64: false, 63: true} {
		c := decoded(t, encode("", []Part{{Recorder: &r}}, minText, most)).Conversations[0]
		if len(c.Messages) != most || (c.Omitted == "") == omitted {
			t.Errorf("%d messages of at most %d, omitted %q", len(c.Messages), most, c.Omitted)
		}
	}
}

func TestEncodeIsBounded(t *testing.T) {
	var r Recorder
	var messages []chat.Message
	for range 120 {
		messages = append(messages, user(strings.Repeat("long ", 7000)))
	}
	r.Prompt(messages, nil)
	for _, limit := range []int{8 << 20, 1 << 20, 100 << 10, 8 << 10} {
		data := Encode("", []Part{{Recorder: &r}}, limit)
		if len(data) == 0 || len(data) > limit {
			t.Fatalf("%d bytes, want some and at most %d", len(data), limit)
		}
		c := decoded(t, data).Conversations[0]
		if !strings.Contains(c.Messages[0].Text, "bytes are left out") || (len(c.Messages) < 120) != (c.Omitted != "") {
			t.Errorf("in %d bytes: %d messages, omitted %q, and nothing says that texts are cut", limit, len(c.Messages),
				c.Omitted)
		}
	}
}

func TestFromGroup(t *testing.T) {
	var r Recorder
	r.Prompt([]chat.Message{user("a")}, nil)
	group := rl.Group{Environment: "e", Members: []rl.Member{{
		Reward: 0.5, Parts: map[string]float64{"format": 0.5}, StopReason: "stop",
		Trajectories: []rl.Trajectory{{Role: "solver", Key: "s", Reward: 0.25,
			Judgements: []rl.Judgement{{Criterion: "c", Rationale: "why", Rating: 1}}}},
		Transcript: Encode("", []Part{{Role: "solver", Key: "s", Recorder: &r}}, 1<<20),
	}}}
	reward := 0.25
	want := Group{Environment: "e", Outcome: "Usable", Episodes: []Episode{{
		Outcome: "Usable", Reward: 0.5, Parts: map[string]float64{"format": 0.5}, Metrics: map[string]float64{},
		StopReason: "stop",
		Conversations: []Conversation{{Role: "solver", Key: "s", Reward: &reward,
			Messages:   []Message{{Role: "user", Text: "a"}},
			Judgements: []Judgement{{Criterion: "c", Rationale: "why", Rating: 1}}}},
	}}}
	if diff := cmp.Diff(want, FromGroup(group)); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	group.Members[0].Transcript = nil
	if got := FromGroup(group); got.Missing == "" || len(got.Episodes) != 1 {
		t.Errorf("a group without a record is %+v, want that it says so and has its rewards", got)
	}
}
