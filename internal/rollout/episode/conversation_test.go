// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// The environment sees the answer only. The renderer needs what the policy said before it, too.
func TestRenderHandsSampledIDsAndReasoningBack(t *testing.T) {
	said := chat.Message{Role: "assistant", Content: "4"}
	parts := []chat.Part{{Text: "two and two", Thinking: true}, {Text: "4"}}
	c := &conversation{replies: []chat.Message{{Role: "assistant", Content: "4", Sampled: []int32{1, 2}, Parts: parts}}}
	prompt := environment.Prompt{Messages: []chat.Message{{Role: "user", Content: "2+2?"}, said, {Role: "user", Content: "Sure?"}, said}}
	want := renderer.Conversation{Messages: []chat.Message{
		{Role: "user", Content: "2+2?"},
		{Role: "assistant", Content: "4", Sampled: []int32{1, 2}, Parts: parts},
		{Role: "user", Content: "Sure?"},
		{Role: "assistant", Content: "4"}, // not the policy's: it has said so once
	}}
	if diff := cmp.Diff(want, c.render(prompt)); diff != "" {
		t.Errorf("render (-want +got):\n%s", diff)
	}
}
