// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// conversation is one trajectory of an episode.
type conversation struct {
	role, key string
	// broken is the cause for which a branch of an agent does not continue another one.
	broken string
	// replies are the replies that were sampled so far, in order. They have sampled ids, and parts such as reasoning,
	// which the environment does not receive.
	replies []chat.Message
	// rounds are the rounds of the episode in which the replies were sampled.
	rounds []int
	// rendered is the last prompt, and segments are the segments to train on so far.
	rendered renderer.Rendered
	segments rl.SegmentBuilder
	// taughtRendered and taught are the last prompt and the segments as a teacher with its own system prompt reads them.
	taughtRendered renderer.Rendered
	taught         rl.SegmentBuilder
	// asked counts the requests so far by their content.
	asked map[rl.Digest]int
	// stop is the reason for which the last reply or the conversation ended.
	stop string
	// recorder records the conversation for people; it is nil if the group has no transcript.
	recorder *transcript.Recorder
}

// render returns a prompt in the form that the renderer takes. An assistant's message that is a reply of the policy,
// as the environment received it, has its sampled ids and its reasoning: rendered from its text, it might have other
// ids than the policy sampled. Only the part of the prompt that differs from the last prompt is rendered again.
func (c *conversation) render(prompt environment.Prompt, last *renderer.Rendered) renderer.Conversation {
	out := renderer.Conversation{Messages: slices.Clone(prompt.Messages), Rendered: last}
	if len(prompt.Tools) > 0 {
		out.Tools = prompt.Tools
	}
	for i, m := range prompt.Messages {
		out.Messages[i].Reply = 0
		if c.isReply(m) {
			reply := c.replies[m.Reply-1]
			out.Messages[i].Sampled, out.Messages[i].Parts = reply.Sampled, reply.Parts
		}
	}
	return out
}

// isReply reports whether a message is a reply as the environment received it. The same text is not enough: the
// environment's own examples may have it.
func (c *conversation) isReply(m chat.Message) bool {
	if m.Role != chat.RoleAssistant || m.Reply < 1 || m.Reply > len(c.replies) {
		return false
	}
	known := c.replies[m.Reply-1]
	return known.Content == m.Content && known.CallID == m.CallID && slices.Equal(known.Calls, m.Calls)
}

// identify fills in the identity of a request, from which its seed and number follow.
func (c *conversation) identify(request *Request, key rl.Key, member, try int) {
	content := contentOf(*request)
	request.Request = rl.Request{Kind: key.Kind, Slot: key.Slot, Member: member, Try: try, Conversation: c.key,
		Content: content, Repeat: c.asked[content]}
	request.Turn = len(c.replies)
	if c.asked == nil {
		c.asked = map[rl.Digest]int{}
	}
	c.asked[content]++
}

// withdraw takes back the identity of a request whose reply is not used: the request may be made again.
func (c *conversation) withdraw(request Request) { c.asked[request.Content]-- }

// contentOf digests the content of a request. A setting that is not given has the value with the same effect.
func contentOf(request Request) rl.Digest {
	s := request.Sampling
	content := rl.Content{Prompt: request.Prompt, MaxTokens: int(s.MaxTokens), Temperature: 1, TopP: s.TopP,
		TopK: int(s.TopK), StopTokens: request.Stop.Tokens, StopStrings: request.Stop.Strings}
	if s.Temperature != nil {
		content.Temperature = *s.Temperature
	}
	return content.Digest()
}

// answer parses a sample into the reply that the environment is given, and the message that the conversation keeps.
func answer(r renderer.Renderer, prompt environment.Prompt, request Request,
	sample Sample) (out environment.Reply, kept chat.Message, err error) {
	parsed, err := r.Parse(sample.Tokens)
	if err != nil {
		return environment.Reply{}, chat.Message{}, err
	}
	said := parsed.Message
	out = environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation, Malformed: parsed.Problem}
	out.Message = chat.Message{Role: said.Role, Content: said.Content, Calls: said.Calls, CallID: said.CallID}
	out.Truncated = parsed.Ending == renderer.Truncated
	if out.Truncated && sample.Stopped {
		// A stop of the run ended the reply, and the renderer does not know it.
		out.Truncated = false
		out.Message.Content = cutStop(out.Message.Content, request.Stop.Strings)
	}
	kept = out.Message
	kept.Sampled, kept.Parts = sample.Tokens, said.Parts
	return out, kept, nil
}

// cutStop removes the stop that the text ends with. The renderer may have trimmed white space of the stop.
func cutStop(text string, stops []string) string {
	for _, stop := range stops {
		if rest, ok := strings.CutSuffix(text, strings.TrimSpace(stop)); ok {
			return strings.TrimSpace(rest)
		}
	}
	return text
}

// add adds a turn. A reply that cannot be trained on is an error.
func (c *conversation) add(request Request, sample Sample) (err error) {
	for i, l := range sample.Logprobs {
		if !finite.Is(float64(l)) {
			return fmt.Errorf("the log-probability of token %d is %v", i, l)
		}
	}
	turn := rl.Transition{Turn: request.Turn, Observation: request.Prompt, Action: sample.Tokens,
		Logprobs: sample.Logprobs}
	if c.rendered.IDs, err = c.segments.Append(turn); err != nil {
		return err
	}
	return c.addTaught(request, sample)
}
