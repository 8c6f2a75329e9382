// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// conversation is one trajectory of an episode.
type conversation struct {
	role string
	// replies that were sampled so far, in their order.
	replies []reply
	// segments to train on so far.
	segments []rl.Segment
}

// reply is a sampled message as the environment was given it.
type reply struct {
	message environment.Message
	sampled []int32
	// parts that the message was parsed into, reasoning among them, which the environment is not given.
	parts []renderer.Part
}

// render turns a prompt into the renderer's terms. An assistant's message that is what the policy said, as
// the environment was given it, carries the ids that were sampled for it and its reasoning: rendered from its
// text, it might not be what the policy saw.
func (c *conversation) render(prompt environment.Prompt) renderer.Conversation {
	out := renderer.Conversation{Messages: make([]renderer.Message, len(prompt.Messages))}
	for _, t := range prompt.Tools {
		out.Tools = append(out.Tools, renderer.Tool(t))
	}
	next := 0
	for i, m := range prompt.Messages {
		out.Messages[i] = renderer.Message{Role: m.Role, Content: m.Content, CallID: m.CallID, Name: m.Name}
		for _, call := range m.Calls {
			out.Messages[i].Calls = append(out.Messages[i].Calls, renderer.ToolCall(call))
		}
		if at := c.find(m, next); at >= 0 {
			out.Messages[i].Sampled, out.Messages[i].Parts = c.replies[at].sampled, c.replies[at].parts
			next = at + 1
		}
	}
	return out
}

// find gives the index of the first reply from next on that is the message, or -1.
func (c *conversation) find(m environment.Message, next int) int {
	if m.Role != renderer.RoleAssistant {
		return -1
	}
	for i := next; i < len(c.replies); i++ {
		known := c.replies[i].message
		if known.Content == m.Content && known.CallID == m.CallID && slices.Equal(known.Calls, m.Calls) {
			return i
		}
	}
	return -1
}

// answer parses a sample into what the environment is given, and the parts that the message is made of.
func answer(r renderer.Renderer, prompt environment.Prompt, request Request, sample Sample) (out environment.Reply, parts []renderer.Part, err error) {
	parsed, err := r.Parse(sample.Tokens)
	if err != nil {
		return environment.Reply{}, nil, err
	}
	out = environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation, Malformed: parsed.Problem}
	out.Message = environment.Message{Role: parsed.Message.Role, Content: parsed.Message.Content, CallID: parsed.Message.CallID}
	for _, call := range parsed.Message.Calls {
		out.Message.Calls = append(out.Message.Calls, environment.ToolCall(call))
	}
	out.Truncated = parsed.Ending == renderer.Truncated
	if out.Truncated && sample.Stopped {
		// A stop of the run's own ended the reply. The renderer does not know it.
		out.Truncated = false
		out.Message.Content = cutStop(out.Message.Content, request.Stop.Strings)
	}
	return out, parsed.Message.Parts, nil
}

// cutStop removes the stop that text ends with. The renderer may have trimmed the stop's own white space.
func cutStop(text string, stops []string) string {
	for _, stop := range stops {
		if rest, ok := strings.CutSuffix(text, strings.TrimSpace(stop)); ok {
			return strings.TrimSpace(rest)
		}
	}
	return text
}

// add takes in a turn. A reply that nobody could train on is an error.
func (c *conversation) add(request Request, sample Sample) (err error) {
	for i, l := range sample.Logprobs {
		if math.IsNaN(float64(l)) || math.IsInf(float64(l), 0) {
			return fmt.Errorf("the log-probability of token %d is %v", i, l)
		}
	}
	turn := rl.Transition{Turn: request.Request, Observation: request.Prompt, Action: sample.Tokens, Logprobs: sample.Logprobs}
	c.segments, err = rl.AppendTurn(c.segments, c.role, turn)
	return err
}

// mask keeps the last reply out of the loss.
func (c *conversation) mask() {
	last := c.segments[len(c.segments)-1]
	from := len(last.Tokens) - len(c.replies[len(c.replies)-1].sampled)
	clear(last.Actions[from:])
	clear(last.Logprobs[from:])
}
