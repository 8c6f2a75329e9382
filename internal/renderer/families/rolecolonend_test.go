// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

const end = 256

func simulated(t *testing.T) renderer.Renderer {
	t.Helper()
	r, err := ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatalf("ForModel: %v", err)
	}
	return r
}

// ids joins the bytes of texts and single ids.
func ids(parts ...any) []int32 {
	var out []int32
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			for i := range len(p) {
				out = append(out, int32(p[i]))
			}
		case int:
			out = append(out, int32(p))
		}
	}
	return out
}

func user(text string) chat.Message { return chat.Message{Role: chat.RoleUser, Content: text} }

// TestRoleColonEndExample checks that the separator after a reply is not a part of the reply, because a sampled reply
// ends before it.
func TestRoleColonEndExample(t *testing.T) {
	got, err := simulated(t).Example(renderer.Conversation{Messages: []chat.Message{
		user("q"), {Role: chat.RoleAssistant, Content: "3", Sampled: ids("never", end)},
		user("r"), {Role: chat.RoleAssistant, Content: "4"},
	}}, false)
	want := renderer.Example{
		IDs: ids("User: q\n\nAssistant: 3", end, "\n\nUser: r\n\nAssistant: 4", end, "\n\n"),
		Written: []renderer.Written{
			{Message: 0, Output: renderer.Extent{Begin: 5, End: 9}},
			{Message: 1, Output: renderer.Extent{Begin: 19, End: 22}},
			{Message: 2, Output: renderer.Extent{Begin: 29, End: 33}},
			{Message: 3, Output: renderer.Extent{Begin: 43, End: 46}},
		},
		Given: 43,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Example: %v (-want +got):\n%s", err, diff)
	}
}

func TestRoleColonEndPrompt(t *testing.T) {
	cases := map[string]struct {
		messages []chat.Message
		want     []int32
	}{
		"a question": {messages: []chat.Message{user("What is 1 + 2?")},
			want: ids("User: What is 1 + 2?\n\nAssistant:")},
		"no message at all": {want: ids("Assistant:")},
		"a system message and examples": {messages: []chat.Message{{Role: chat.RoleSystem, Content: "Add."}, user("1 + 1"),
			{Role: chat.RoleAssistant, Content: "2"}, user("2 + 2")}, want: ids("System: Add.\n\nUser: 1 + 1\n\nAssistant: 2",
			end, "\n\nUser: 2 + 2\n\nAssistant:")},
		"names of special tokens are text": {messages: []chat.Message{user("<|end|>")},
			want: ids("User: <|end|>\n\nAssistant:")},
		"what was sampled stays as it was": {messages: []chat.Message{user("q"), {Role: chat.RoleAssistant, Content: "3",
			Sampled: ids("3  ", end)}, user("r")}, want: ids("User: q\n\nAssistant:3  ", end, "\n\nUser: r\n\nAssistant:")},
		"a cut reply is closed": {messages: []chat.Message{user("q"), {Role: chat.RoleAssistant, Content: "3",
			Sampled: ids(" 3")}, user("r")}, want: ids("User: q\n\nAssistant: 3", end, "\n\nUser: r\n\nAssistant:")},
		"an empty cut reply, too": {messages: []chat.Message{user("q"), {Role: chat.RoleAssistant, Sampled: []int32{}},
			user("r")}, want: ids("User: q\n\nAssistant:", end, "\n\nUser: r\n\nAssistant:")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := simulated(t).Prompt(renderer.Conversation{Messages: tc.messages})
			if err != nil {
				t.Fatalf("Prompt: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Prompt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoleColonEndUnsupported(t *testing.T) {
	cases := map[string]renderer.Conversation{
		"tools":           {Messages: []chat.Message{user("q")}, Tools: []chat.Tool{{Name: "add"}}},
		"a tool's result": {Messages: []chat.Message{{Role: chat.RoleTool, Content: "3", CallID: "1"}}},
		"a call":          {Messages: []chat.Message{{Role: chat.RoleAssistant, Calls: []chat.ToolCall{{Name: "add"}}}}},
		"a role unknown":  {Messages: []chat.Message{{Role: "player", Content: "3"}}},
	}
	for name, conversation := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := simulated(t).Prompt(conversation); !errors.Is(err, renderer.ErrUnsupported) {
				t.Errorf("Prompt = %v, %v, want ErrUnsupported", got, err)
			}
		})
	}
}

func TestRoleColonEndParse(t *testing.T) {
	cases := map[string]struct {
		sampled []int32
		content string
		ending  renderer.Ending
	}{
		"a reply that ends":               {sampled: ids(" 198", end), content: "198", ending: renderer.Stopped},
		"an empty reply that ends":        {sampled: ids(end), content: "", ending: renderer.Stopped},
		"a reply that was cut":            {sampled: ids(" 19"), content: "19", ending: renderer.Truncated},
		"nothing at all":                  {sampled: []int32{}, content: "", ending: renderer.Truncated},
		"text after the end is malformed": {sampled: ids(" 1", end, "2"), content: "1", ending: renderer.Malformed},
		"two ends are malformed":          {sampled: ids(" 1", end, end), content: "1", ending: renderer.Malformed},
		"the text of the end token":       {sampled: ids(" 1<|end|>"), content: "1<|end|>", ending: renderer.Truncated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := simulated(t).Parse(tc.sampled)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			want := chat.Message{Role: chat.RoleAssistant, Content: tc.content, Sampled: tc.sampled}
			if diff := cmp.Diff(want, got.Message); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
			if got.Ending != tc.ending || (got.Problem != "") != (tc.ending == renderer.Malformed) {
				t.Errorf("Parse: ending %d, problem %q, want ending %d", got.Ending, got.Problem, tc.ending)
			}
		})
	}
}

func TestRoleColonEndParseUnknownID(t *testing.T) {
	if got, err := simulated(t).Parse([]int32{300}); err == nil {
		t.Errorf("Parse of an unknown id = %+v, want an error", got)
	}
}

// TestRoleColonEndExtends checks that the next prompt extends prompt and reply, whatever was sampled. Otherwise turns
// would train separately.
func TestRoleColonEndExtends(t *testing.T) {
	replies := map[string][]int32{
		"with the usual space": ids(" 12", end),
		"without it":           ids("12", end),
		"with blank lines":     ids("\n\n 12\n\n", end),
		"cut":                  ids(" 12 and"),
		"empty":                ids(end),
		"no UTF-8":             ids(0xff, 0xe2, end),
		"continued":            ids("1", end, "2", end),
	}
	for name, sampled := range replies {
		t.Run(name, func(t *testing.T) {
			r := simulated(t)
			messages := []chat.Message{user("What is 5 + 7?")}
			for range 3 {
				prompt, err := r.Prompt(renderer.Conversation{Messages: messages})
				if err != nil {
					t.Fatal(err)
				}
				parsed, err := r.Parse(sampled)
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, parsed.Message, user("Are you sure?"))
				next, err := r.Prompt(renderer.Conversation{Messages: messages})
				if err != nil {
					t.Fatal(err)
				}
				if before := slices.Concat(prompt, sampled); len(next) <= len(before) || !slices.Equal(next[:len(before)], before) {
					t.Fatalf("the next prompt %v does not extend %v", next, before)
				}
			}
		})
	}
}
