// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// counting is a tokenizer that counts the bytes that it encodes.
type counting struct {
	tokenizer.Tokenizer
	encoded int
}

func (c *counting) AppendEncode(dst []int32, text string, match tokenizer.Match) []int32 {
	c.encoded += len(text)
	return c.Tokenizer.AppendEncode(dst, text, match)
}

// newCounting returns a tokenizer that counts, and a renderer that uses it.
func newCounting(t *testing.T) (*counting, renderer.Renderer) {
	t.Helper()
	plain, err := tokenizer.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	tokens := &counting{Tokenizer: plain}
	r, err := New("role_colon_end", tokens, Options{End: "<|end|>"})
	if err != nil {
		t.Fatal(err)
	}
	return tokens, r
}

// TestConversationExtendsWithoutEncodingAgain checks that rendering the next turn of a long conversation does not
// encode the earlier turns again.
func TestConversationExtendsWithoutEncodingAgain(t *testing.T) {
	tokens, r := newCounting(t)
	var messages []chat.Message
	for i := range 100 {
		text := fmt.Sprint(i, strings.Repeat(" word", 100))
		messages = append(messages, chat.Message{Role: chat.RoleUser, Content: text},
			chat.Message{Role: chat.RoleAssistant, Content: text})
	}
	messages = append(messages, user("one more"))
	before, err := r.Prompt(renderer.Conversation{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	tokens.encoded = 0
	messages = append(messages, chat.Message{Role: chat.RoleAssistant, Content: "yes", Sampled: ids(" yes", end)},
		user("and the last"))
	after, err := r.Prompt(renderer.Conversation{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(" and the last"); tokens.encoded != want {
		t.Errorf("%d bytes were encoded for the next turn, want %d", tokens.encoded, want)
	}
	if !slices.Equal(after[:len(before)], before) {
		t.Errorf("the next prompt begins with %v, want %v as the last one", after[:len(before)], before)
	}
}

// TestConversationKeepsItsOwnPieces checks that the next turn of a conversation encodes nothing twice, however many
// texts of other conversations were rendered since its last turn: a worker has thousands of long conversations at once.
func TestConversationKeepsItsOwnPieces(t *testing.T) {
	tokens, r := newCounting(t)
	var rendered renderer.Rendered
	messages := []chat.Message{user(strings.Repeat("long ", 1000))}
	if _, err := r.Prompt(renderer.Conversation{Messages: messages, Rendered: &rendered}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		other := []chat.Message{user(fmt.Sprint(i, strings.Repeat("other", 100_000)))}
		if _, err := r.Prompt(renderer.Conversation{Messages: other}); err != nil {
			t.Fatal(err)
		}
	}
	tokens.encoded = 0
	messages = append(messages, chat.Message{Role: chat.RoleAssistant, Content: "yes", Sampled: ids(" yes", end)},
		user("and the last"))
	if _, err := r.Prompt(renderer.Conversation{Messages: messages, Rendered: &rendered}); err != nil {
		t.Fatal(err)
	}
	if most := len("User: Assistant:") + len(" and the last"); tokens.encoded > most {
		t.Errorf("%d bytes were encoded for the next turn, want at most %d", tokens.encoded, most)
	}
}
