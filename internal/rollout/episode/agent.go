// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/stoptext"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

var _ environment.TimedPolicy = (*driver)(nil)

// agent has the requests of an agent so far.
type agent struct {
	branches
	// open counts open requests, and unanswered the open requests without a reply.
	open, unanswered int
	// last is the request that was made last. overlaps says that it was made while another was open.
	last     *node
	overlaps bool
	// limit is the limit of the whole episode that the agent has reached.
	limit string
	// expired is closed once the time of the episode is over. timed says that the agent watches expired and ends by
	// itself.
	expired chan struct{}
	timed   bool
}

// mostGrace is how long an agent that ends by itself may continue after the end of its time.
const mostGrace = 2 * time.Hour

// Expired implements environment.TimedPolicy.
func (d *driver) Expired() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agent.timed = true
	return d.agent.expired
}

// expireAgent signals to an agent that its time is over, and reports whether the agent ends by itself.
func (d *driver) expireAgent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expireTimed()
}

// expireTimed is expireAgent with the lock held.
func (d *driver) expireTimed() bool {
	if d.agent.timed && !d.isExpired() {
		d.agent.limit = stopEpisodeSeconds
		close(d.agent.expired)
		time.AfterFunc(mostGrace, func() { d.cancel(&environment.LimitError{Limit: stopEpisodeSeconds}) })
	}
	return d.agent.timed
}

// isExpired reports whether the agent has received the signal that its time is over. The lock is held.
func (d *driver) isExpired() bool { return wait.IsClosed(d.agent.expired) }

// Complete implements environment.AgentPolicy. The seed and the number of a request do not depend on a conversation:
// the conversation that a request continues is decided at the end of the episode.
func (d *driver) Complete(ctx context.Context, asked environment.Completion) (environment.Completed, error) {
	if asked.FrozenName != "" {
		return d.completeFrozen(ctx, asked)
	}
	n, stops, err := d.admitCompletion(asked)
	if err != nil {
		return environment.Completed{}, err
	}
	clock := d.episode.recorder.current()
	defer clock.pause()()
	scores, err := d.scoreOnce(ctx, asked, n.request)
	var sample Sample
	if err == nil && !asked.Unanswered {
		sample, err = d.sampleOnce(ctx, n.request, d.episode.reply)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.close(asked)
	switch {
	case d.ended:
		return environment.Completed{}, errEnded
	case err != nil && ctx.Err() != nil:
		return environment.Completed{}, err
	case err == nil && d.episode.timeLimit() == 0:
		clock.renew()
	case err == nil && clock.count(sample.Took) && !d.expireTimed(): // Otherwise this reply is the last one.
		err = &environment.LimitError{Limit: stopEpisodeSeconds}
	}
	var out environment.Completed
	if err == nil {
		out, err = d.recordCompletion(asked, n, sample, stops)
	}
	if err != nil {
		return environment.Completed{}, d.failUnlessRefused(err)
	}
	d.describePrompt(asked, n, scores, &out)
	return out, nil
}

// CountTokens implements environment.AgentPolicy.
func (d *driver) CountTokens(asked environment.Completion) (int, error) {
	if asked.FrozenName != "" {
		return d.countFrozen(asked)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return 0, errEnded
	}
	n, err := d.nodeOf(asked)
	if err != nil {
		return 0, d.failUnlessAsked(err)
	}
	return len(n.request.Prompt), nil
}

// Last implements environment.AgentPolicy.
func (d *driver) Last() (environment.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.agent.lastReply()
	if err != nil {
		return environment.Reply{}, err
	}
	message := chat.Message{Role: n.reply.Role, Content: strings.TrimSpace(saidBy(n.reply)), Calls: n.reply.Calls}
	return environment.Reply{Role: n.role, Message: message, Truncated: n.stop == stopLength, Malformed: n.malformed,
		Seed: n.request.Seed(rl.UseJudge, d.episode.spec.Seed)}, nil
}

// lastReply returns the reply to the last request.
func (a *agent) lastReply() (*node, error) {
	switch {
	case a.last == nil:
		return nil, permanent("the agent never asked the policy")
	case a.overlaps:
		return nil, permanent("the agent made its last request while another was open, so that the order of requests " +
			"would decide which reply is the last: await all others before it")
	case a.last.tokens == nil:
		return nil, permanent("the agent ended while its last request was open")
	}
	return a.last, nil
}

// failUnlessAsked ends the episode with an error, unless the error is an answer to the agent.
func (d *driver) failUnlessAsked(err error) error {
	var refused *environment.RequestError
	var limit *environment.LimitError
	if errors.As(err, &refused) || errors.As(err, &limit) {
		return err
	}
	return d.fail(err)
}

// admitCompletion returns the request of an agent, which is open from now on, and the texts at which its reply is cut.
func (d *driver) admitCompletion(asked environment.Completion) (*node, []string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, nil, errEnded
	}
	n, err := d.nodeOf(asked)
	if err != nil {
		return nil, nil, d.failUnlessAsked(err)
	}
	if d.isExpired() {
		return nil, nil, &environment.LimitError{Limit: stopEpisodeSeconds}
	}
	if most := int(d.episode.spec.Settings.Limits.Requests); most > 0 && d.made >= most {
		d.agent.limit = stopRequests
		return nil, nil, &environment.LimitError{Limit: stopRequests}
	}
	if asked.MaxTokens > 0 {
		n.request.Sampling.MaxTokens = min(n.request.Sampling.MaxTokens, int32(min(asked.MaxTokens, 1<<30)))
	}
	// The request has the stops of the run or of the model's format, and the endpoint takes no texts beside them. So the
	// reply is sampled to its end, and cut afterwards.
	n.request.Stop = d.episode.stops()
	d.identifyCompletion(n)
	d.episode.player.expressed(d.made)
	d.made++
	d.agent.open++
	if asked.Unanswered {
		d.agent.unanswered++
	} else {
		d.agent.last, d.agent.overlaps = n, d.agent.open-d.agent.unanswered > 1
	}
	return n, asked.Stop, nil
}

// identifyCompletion fills in the identity of a request, from which its seed and number follow.
func (d *driver) identifyCompletion(n *node) {
	key := d.episode.spec.Key
	content := contentOf(n.request)
	if d.agent.asked == nil {
		d.agent.asked = map[rl.Digest]int{}
	}
	n.request.Request = rl.Request{Kind: key.Kind, Slot: key.Slot, Member: d.episode.member, Try: d.episode.try,
		Content: content, Repeat: d.agent.asked[content]}
	d.agent.asked[content]++
}

// nodeOf returns the request of an agent within the limits, with the reply that it extends.
func (d *driver) nodeOf(asked environment.Completion) (*node, error) {
	if err := d.checkScored(asked); err != nil {
		return nil, err
	}
	if !contract.IsRole(asked.Role) {
		return nil, &environment.RequestError{Message: fmt.Sprintf("The role %q does not exist.", asked.Role)}
	}
	var n *node
	var err error
	if asked.Raw {
		n, err = d.rawNode(asked)
	} else {
		n, err = d.chatNode(asked)
	}
	if err != nil {
		return nil, err
	}
	if n.parent != nil {
		n.depth = n.parent.depth + 1
	}
	limits := d.episode.spec.Settings.Limits
	if most := int(limits.Turns); most > 0 && n.depth >= most {
		return nil, &environment.LimitError{Limit: stopTurns}
	}
	ids := n.request.Prompt
	request, limit := d.episode.within(ids, n.parent == nil)
	if limit != "" {
		most := limits.TrajectoryTokens
		if limit == stopPromptTokens {
			most = limits.PromptTokens
		}
		return nil, &environment.LimitError{Limit: limit, Tokens: len(ids), Most: int(most)}
	}
	n.request = request
	return n, nil
}

// chatNode renders a conversation. The messages up to an earlier reply are rendered as before, with the sampled
// tokens, even if the agent has changed their text.
func (d *driver) chatNode(asked environment.Completion) (*node, error) {
	if len(asked.Messages) == 0 {
		return nil, &environment.RequestError{Message: "The conversation has no message."}
	}
	means := meanings(asked.Role, asked.Messages)
	parent, through := d.agent.extended(asked.Messages, means)
	n := &node{parent: parent, role: asked.Role, own: slices.Clone(asked.Messages[through:]), means: means[through:],
		tools: asked.Tools}
	n.toolsSay = toolsMeaning(asked.Tools)
	conversation := renderer.Conversation{Messages: n.own, Rendered: &n.rendered}
	if parent != nil {
		n.rendered = parent.rendered
		before := parent.conversation()
		adoptCallIDs(asked.Messages[:through], before, n.own)
		conversation.Messages = append(before, n.own...)
	}
	if len(asked.Tools) > 0 {
		conversation.Tools = asked.Tools
	}
	ids, err := d.episode.player.Renderer.Prompt(conversation)
	switch {
	case errors.Is(err, renderer.ErrTools):
		return nil, &FormatError{Err: err, sampled: d.made > 0}
	case err != nil:
		return nil, &environment.RequestError{Message: "The model's format cannot express the conversation: " + err.Error() +
			"."}
	}
	n.request.Prompt = ids
	return n, nil
}

// adoptCallIDs sets the IDs of results to the IDs that their calls had when they were sampled, since some formats write
// them.
func adoptCallIDs(sent, known, results []chat.Message) {
	ids := map[string]string{}
	for i, m := range sent {
		for j, call := range m.Calls {
			if j < len(known[i].Calls) {
				ids[call.ID] = known[i].Calls[j].ID
			}
		}
	}
	for i, m := range results {
		if id, ok := ids[m.CallID]; ok && m.Role == chat.RoleTool {
			results[i].CallID = id
		}
	}
}

// recordCompletion records a reply, and returns the reply for the agent.
func (d *driver) recordCompletion(asked environment.Completion, n *node, sample Sample,
	stops []string) (environment.Completed, error) {
	if asked.Scored {
		d.episode.promptTokens += int64(len(n.request.Prompt))
	}
	if asked.Unanswered {
		return unanswered(n), nil
	}
	d.episode.requests++
	d.episode.promptTokens += int64(len(n.request.Prompt))
	d.episode.sampledTokens += int64(len(sample.Tokens))
	record := d.recordChat
	if asked.Raw {
		record = d.recordRaw
	}
	stop, says, err := record(asked, n, sample, stops)
	if err != nil {
		return environment.Completed{}, &RefusedError{Err: err}
	}
	n.store()
	if asked.Raw {
		says = rawMeaning(n.role, n.tokens)
	}
	n.means = append(n.means, says)
	d.agent.add(n, says)
	out := environment.Completed{
		ID: fmt.Sprintf("%016x", n.request.Seed(rl.UsePolicy, 0)), Message: n.reply, StopText: stop,
		Truncated: n.stop == stopLength, PromptTokens: n.prompt, Tokens: n.sample.Tokens, Logprobs: n.sample.Logprobs,
	}
	if n.parent != nil && n.breaks() == "" {
		out.KnownTokens = len(n.parent.tokens)
	}
	d.describe(asked, n, &out)
	return out, nil
}

// describe adds the texts of a raw request, or the number of reasoning tokens, and the texts of tokens if the agent
// wants log-probabilities.
func (d *driver) describe(asked environment.Completion, n *node, out *environment.Completed) {
	if asked.Raw {
		out.Text, out.PromptText = n.reply.Content, n.promptText()
	} else if n.kept.IsStructured() {
		out.ReasoningTokens = renderer.ReasoningTokens(d.episode.player.Renderer, n.sample.Tokens)
	}
	texts := renderer.TextsOf(d.episode.player.Renderer)
	if texts == nil || !asked.Logprobs {
		return
	}
	for _, id := range n.sample.Tokens {
		text, _ := texts.Decode([]int32{id}) // The renderer has read the token.
		out.Texts = append(out.Texts, text)
	}
}

// recordChat parses a reply to a conversation. It returns the text that ended it, and the meaning of all messages.
func (d *driver) recordChat(asked environment.Completion, n *node, sample Sample,
	stops []string) (string, meaning, error) {
	says := func(tokens []int32) (string, error) {
		parsed, err := d.episode.player.Renderer.Parse(tokens)
		return saidUntrimmed(parsed.Message), err
	}
	sample, stop, err := cutSample(sample, stops, says)
	if err != nil {
		return "", meaning{}, err
	}
	reply, kept, err := answer(d.episode.player.Renderer, environment.Prompt{Role: n.role}, n.request, sample)
	if err != nil {
		return "", meaning{}, err
	}
	n.sample, n.kept, n.malformed, n.stop = sample, kept, reply.Malformed, stopStop
	n.reply = kept
	n.reply.Sampled = nil
	if stop != "" {
		n.reply = stoptext.Before(n.reply, stop)
		n.kept.Content, n.kept.Parts = n.reply.Content, n.reply.Parts
	}
	n.reply.Calls = slices.Clone(n.reply.Calls)
	if slices.ContainsFunc(n.reply.Calls, chat.ToolCall.LacksObject) {
		n.reply.Calls = nil // No dialect can express such a call. The agent receives the text.
	}
	n.nameCalls()
	switch {
	case !sample.Stopped:
		n.stop = stopLength
	case reply.Malformed != "":
		n.stop = stopMalformed
	}
	means := meanings(n.role, append(slices.Clone(asked.Messages), n.reply))
	return stop, means[len(means)-1], nil
}

// nameCalls sets the ID of a call that has none, or an ID that the conversation has already: agents tell calls apart by
// their IDs.
func (n *node) nameCalls() {
	used := map[string]bool{}
	for at := n.parent; at != nil; at = at.parent {
		for _, call := range at.reply.Calls {
			used[call.ID] = true
		}
	}
	for i, call := range n.reply.Calls {
		if call.ID == "" || used[call.ID] {
			n.reply.Calls[i].ID = fmt.Sprintf("call_%016x_%d", n.request.Seed(rl.UsePolicy, 0), i)
		}
		used[n.reply.Calls[i].ID] = true
	}
}

// saidUntrimmed returns the text of a message without its reasoning.
func saidUntrimmed(m chat.Message) string {
	said := ""
	for _, part := range m.AllParts() {
		if !part.Thinking {
			said += part.Text
		}
	}
	return said
}

// plant makes the conversations of the episode from the requests of an agent.
func (d *driver) plant(turn environment.Turn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.agent.nodes) == 0 {
		return nil
	}
	all := d.agent.list()
	if len(all) > rl.MaxTrajectories {
		return permanent("the agent has more than %d branches", rl.MaxTrajectories)
	}
	for name, value := range metricsOf(all) {
		d.episode.metrics = put(d.episode.metrics, name, value)
	}
	if turn.OnlyLast {
		last, err := d.agent.lastReply()
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(one branch) bool { return !slices.Contains(one.nodes, last) })
	}
	for _, one := range all {
		if err := d.plantBranch(one); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) plantBranch(one branch) error {
	head := one.nodes[0]
	c := &conversation{role: head.role, key: one.key, broken: one.broken}
	if d.episode.spec.Transcript {
		c.recorder = &transcript.Recorder{}
	}
	for i, n := range one.nodes {
		if c.recorder != nil {
			prompt := n.own
			if n.parent != nil {
				prompt = append(n.parent.conversation(), n.own...)
			}
			c.recorder.Prompt(prompt, n.tools)
			c.recorder.BreakPrefix(n.breaks())
			c.recorder.Reply(n.kept, n.kept.Parts, n.malformed)
		}
		c.replies, c.rounds, c.stop = append(c.replies, n.kept), append(c.rounds, d.episode.turns), n.stop
		n.request.Turn = i
		if err := c.add(n.request, n.sample); err != nil {
			return &RefusedError{Err: err}
		}
	}
	d.episode.conversations[c.key] = c
	d.episode.order = append(d.episode.order, c)
	return nil
}

// toolsMeaning returns a digest of declared tools.
func toolsMeaning(tools []chat.Tool) meaning {
	var list []chat.Message
	for _, tool := range tools {
		list = append(list, chat.Message{Role: tool.Name, Content: tool.Description + "\n" + string(tool.Parameters)})
	}
	if len(list) == 0 {
		return meaning{}
	}
	means := meanings("tools", list)
	return means[len(means)-1]
}
