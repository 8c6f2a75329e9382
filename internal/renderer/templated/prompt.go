// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Prompt implements renderer.Renderer.
//
// Let R be the template's output for a conversation up to the policy's last reply, and N its output for the whole
// conversation with the header of the next reply. If N begins with R, the prompt is the prompt of that reply, the
// sampled ids with their stop, and the part of N after the stop. Otherwise the template has rewritten history, and the
// prompt is N.
func (r *Renderer) Prompt(conversation renderer.Conversation) ([]int32, error) {
	if conversation.Tools != nil && r.calls == nil {
		return nil, r.toolsError()
	}
	last := conversation.Rendered
	prefill := conversation.Prefill
	conversation.Rendered, conversation.Prefill = nil, ""
	ids, err := r.prompt(conversation, last)
	if err != nil {
		return nil, err
	}
	if last != nil {
		last.IDs, last.Pieces = ids, nil
		if key, ok := keyOf(conversation); ok {
			last.Pieces = []renderer.Piece{{Text: key, End: len(ids)}}
		}
	}
	if prefill == "" {
		return ids, nil
	}
	return r.config.Tokens.AppendEncode(slices.Clip(ids), prefill, tokenizer.Specials), nil
}

func (r *Renderer) toolsError() error {
	if !r.traits.DeclaresTools {
		return fmt.Errorf("the chat template does not write tools: %w", renderer.ErrTools)
	}
	return fmt.Errorf("the chat template writes calls in a dialect that cannot be read: %w", renderer.ErrTools)
}

// keyOf identifies a conversation among the prompts that a Rendered has.
func keyOf(conversation renderer.Conversation) (key [sha256.Size]byte, ok bool) {
	data, err := json.Marshal(conversation)
	return sha256.Sum256(data), err == nil
}

func (r *Renderer) prompt(conversation renderer.Conversation, last *renderer.Rendered) ([]int32, error) {
	next, err := r.write(conversation, true)
	if err != nil {
		return nil, err
	}
	ids, ok, err := r.continued(conversation, next, last)
	if err != nil || ok {
		return ids, err
	}
	return r.config.Tokens.AppendEncodeWhere(nil, next.text, next.fromTemplate), nil
}

// lastSampled returns the index of the policy's last reply; -1 if there is none.
func lastSampled(messages []chat.Message) int {
	at := len(messages) - 1
	for at >= 0 && (messages[at].Role != chat.RoleAssistant || messages[at].Sampled == nil) {
		at--
	}
	return at
}

// continued returns the prompt that continues the sampled ids, unless the template has rewritten them.
func (r *Renderer) continued(conversation renderer.Conversation, next written,
	last *renderer.Rendered) (ids []int32, ok bool, err error) {
	messages := conversation.Messages
	at := lastSampled(messages)
	if at < 0 {
		return nil, false, nil
	}
	sampled := messages[at].Sampled
	if n := len(sampled); n > 0 && slices.Contains(r.foreign, sampled[n-1]) {
		return nil, false, nil // History has another token at this place.
	}
	conversation.Messages = messages[:at+1]
	replied, err := r.write(conversation, false)
	if err != nil || !strings.HasPrefix(next.text, replied.text) {
		return nil, false, nil // The template may accept a beginning that it does not accept as an end.
	}
	conversation.Messages = messages[:at]
	opened, err := r.write(conversation, true)
	if err != nil {
		return nil, false, err
	}
	tail, ok := r.behindReply(sampled, opened, replied, next)
	if !ok {
		return nil, false, nil
	}
	before, err := r.before(conversation, last)
	return slices.Concat(before, sampled, tail), err == nil, err
}

// behindReply returns the ids that follow a reply: its stop, unless that was sampled, and the ids after it in the whole
// conversation. ok is false if the reply ended as if another kind of message followed.
func (r *Renderer) behindReply(sampled []int32, opened, replied, next written) (ids []int32, ok bool) {
	tail, stop, isNext, ok := r.behindStop(opened, replied, next)
	stopped := slices.ContainsFunc(sampled, r.profile.IsStop)
	switch {
	case !ok, isNext && stopped && sampled[len(sampled)-1] != stop:
		return nil, false
	case stopped:
		return tail, true
	case isNext:
		return append([]int32{stop}, tail...), true
	default:
		return append([]int32{r.profile.ID(r.profile.End)}, tail...), true
	}
}

// before returns the prompt of a conversation that was rendered before, if last still has it.
func (r *Renderer) before(conversation renderer.Conversation, last *renderer.Rendered) ([]int32, error) {
	if key, ok := keyOf(conversation); ok {
		if ids, known := last.Find(key, 0); known {
			return ids, nil
		}
	}
	return r.prompt(conversation, nil)
}

// behindStop returns the ids after the stop of the last reply in the whole conversation. isNext means that the template
// writes the stop only once another message follows. ok is false if a mark follows that is not a known stop.
func (r *Renderer) behindStop(opened, replied, next written) (ids []int32, stop int32, isNext, ok bool) {
	from := commonPrefix(opened.text, replied.text)
	place, found := renderer.Extent{}, false
	for _, token := range r.tokensOf(replied) {
		if token.End > from && slices.Contains(r.traits.Ends, replied.text[token.Begin:token.End]) {
			place, found = token, true
		}
	}
	end := len(replied.text)
	if !found {
		for _, name := range r.traits.Ends {
			if strings.HasPrefix(next.text[end:], name) && next.fromTemplate(end, end+len(name)) {
				place, found, isNext = renderer.Extent{Begin: end, End: end + len(name)}, true, true
				break
			}
		}
	}
	if !found { // The template writes no stop at all.
		return r.config.Tokens.AppendEncodeWhere(nil, next.text[end:], shifted(next, end)), stop, false, !r.marks
	}
	// The stop is encoded as well, since a tokenizer may treat the beginning of a text differently.
	ids = r.config.Tokens.AppendEncodeWhere(nil, next.text[place.Begin:], shifted(next, place.Begin))
	if len(ids) == 0 {
		return nil, 0, false, false
	}
	return ids[1:], ids[0], isNext, true
}

// shifted returns the fromTemplate function of the part of a text that begins at by.
func shifted(out written, by int) func(start, end int) bool {
	return func(start, end int) bool { return out.fromTemplate(by+start, by+end) }
}
