// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
)

func TestReadRow(t *testing.T) {
	sum := []chat.Message{{Role: "user", Content: "2+2?"}, {Role: "assistant", Content: "4"}}
	for name, c := range map[string]struct {
		row  string
		want supervised.Row
	}{
		"messages": {
			`{"id": 7, "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]}`,
			supervised.Row{Conversation: renderer.Conversation{Messages: sum}},
		},
		"fields that are null, as Parquet has them": {
			`{"text": null, "prompt": null, "tools": null, "messages": [{"role": "user", "content": "2+2?", "name": null, "tool_calls": null, "weight": null},
				{"role": "assistant", "content": "4", "name": null, "tool_calls": null, "weight": null}]}`,
			supervised.Row{Conversation: renderer.Conversation{Messages: sum}},
		},
		"prompt and completion": {
			`{"prompt": "2+2?", "completion": "4"}`,
			supervised.Row{Conversation: renderer.Conversation{Messages: sum}},
		},
		"prompt and completion as messages": {
			`{"prompt": [{"role": "user", "content": "2+2?"}], "completion": [{"role": "assistant", "content": "4"}]}`,
			supervised.Row{Conversation: renderer.Conversation{Messages: sum}},
		},
		"text": {`{"text": "Two."}`, supervised.Row{Text: "Two."}},
		"weights of messages": {
			`{"messages": [{"role": "user", "content": "2+2?", "trainable": false}, {"role": "assistant", "content": "4", "weight": 0.5}]}`,
			supervised.Row{
				Conversation: renderer.Conversation{Messages: sum},
				Marks:        []supervised.Mark{{Weight: new(0.0)}, {Weight: new(0.5)}},
			},
		},
		"weights of parts": {
			`{"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": [
				{"type": "thinking", "thinking": "two", "weight": 0}, {"type": "text", "text": "4"}]}]}`,
			supervised.Row{
				Conversation: renderer.Conversation{Messages: []chat.Message{
					sum[0], {Role: "assistant", Parts: []chat.Part{{Text: "two", Thinking: true}, {Text: "4"}}},
				}},
				Marks: []supervised.Mark{{}, {Parts: []*float64{new(0.0), nil}}},
			},
		},
		"a weight that is text of a message": {
			`{"messages": [{"role": "user", "content": "the \"weight\""}]}`,
			supervised.Row{Conversation: renderer.Conversation{Messages: []chat.Message{{Role: "user",
				Content: `the "weight"`}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := supervised.ReadRow([]byte(c.row))
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("ReadRow: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestReadRowRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		row    string
		reason supervised.Reason
		want   string
	}{
		"no known column": {`{"question": "x"}`, supervised.NotRendered,
			"its columns are question; it needs messages, prompt and completion, text, or episode: rename a column, or map it " +
				"with supervised.dataset.fields"},
		"two forms": {`{"text": "x", "messages": [{"role": "user", "content": "x"}]}`, supervised.NotRendered,
			"several forms"},
		"a prompt alone":     {`{"prompt": "x"}`, supervised.NotRendered, "completion is missing"},
		"a completion alone": {`{"completion": "x"}`, supervised.NotRendered, "prompt is missing"},
		"a prompt of a number": {`{"prompt": 3, "completion": "x"}`, supervised.NotRendered,
			"prompt: it is neither text nor a list"},
		"an unknown field": {`{"messages": [{"role": "user", "content": "x", "mood": "y"}]}`, supervised.NotRendered,
			`messages[0]: unknown field "mood"`},
		"no list": {`{"messages": "x"}`, supervised.NotRendered, "messages is text, and must be a list of messages"},
		"a negative weight": {`{"messages": [{"role": "user", "content": "x", "weight": -1}]}`, supervised.NotRendered,
			"messages[0]: weight is -1"},
		"a weight of text": {`{"messages": [{"role": "user", "content": "x", "weight": "1"}]}`, supervised.NotRendered,
			`weight is "1"`},
		"trainable of a number": {`{"messages": [{"role": "user", "content": "x", "trainable": 1}]}`, supervised.NotRendered,
			"trainable is 1"},
		"two weights": {`{"messages": [{"role": "user", "content": "x", "trainable": true, "weight": 1}]}`,
			supervised.NotRendered, "keep one of the two"},
		"no messages":   {`{"messages": []}`, supervised.Empty, "messages is empty"},
		"no text":       {`{"text": ""}`, supervised.Empty, "text is empty"},
		"no completion": {`{"prompt": "x", "completion": ""}`, supervised.Empty, "completion is empty"},
		"no object":     {`[1]`, supervised.NotRendered, "reading the row"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := supervised.ReadRow([]byte(c.row))
			checkUnusable(t, err, c.reason, c.want)
		})
	}
}

func checkUnusable(t *testing.T, err error, reason supervised.Reason, want string) {
	t.Helper()
	var unusable *supervised.Unusable
	if !errors.As(err, &unusable) || unusable.Reason != reason || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s: ...%s", err, reason, want)
	}
}
