// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// The stop reasons of a member: how its last reply ended, that the environment ended the episode by a tool's result, or
// which limit ended it.
const (
	stopStop             = "stop"
	stopFinished         = "finished"
	stopLength           = "length"
	stopMalformed        = "malformed"
	stopTurns            = "turns"
	stopRequests         = "requests"
	stopToolCalls        = "tool_calls"
	stopPromptTokens     = "prompt_tokens"
	stopTrajectoryTokens = "trajectory_tokens"
	stopEpisodeSeconds   = environment.LimitEpisodeSeconds
)

// errDeadline ends the sampling of an episode that takes too long.
var errDeadline = errors.New("the episode has reached its time limit")

// episode is one try of one member.
type episode struct {
	player      *Player
	spec        *Spec
	member, try int
	// expire is called when the time of a call is over, and reports whether the call ends by itself; nil for calls that
	// have to be ended.
	expire func() bool
	// before are the interruptions of this try.
	before *interruptions

	running environment.Episode
	// frozen are the requests to models beside the policy.
	frozen        []frozenCall
	conversations map[string]*conversation
	// order lists the conversations in the order in which they began.
	order []*conversation
	// turns counts the rounds of requests, and requests the requests of all rounds.
	turns, requests, toolCalls  int
	promptTokens, sampledTokens int64
	rewards                     []reward
	parts, metrics              map[string]float64
	// stop is the reason for which the episode ended, unless its last reply ended it; it is empty while the episode goes
	// on.
	stop string
	// abandoned says that the policy ended the episode before its end, and nothing graded it.
	abandoned bool
	// ungraded is the reply that ended an episode whose group is scored together; limit is the limit that ended such an
	// episode.
	ungraded *environment.Reply
	limit    string
	// pending are the prompts that have no reply yet, or whose replies the environment did not take in time.
	pending []environment.Prompt
	// elapsed is how long the policy and the environment worked since the first request. Replies of one round are
	// sampled concurrently: the slowest counts.
	elapsed  time.Duration
	recorder recorder
}

// guarded calls play, and returns a panic as a fault: a renderer and the parser of its model's calls read texts of
// the policy.
func (e *episode) guarded(ctx context.Context) (m rl.Member, reason string, err error) {
	_, err = environment.Guard(e.player.Calls.Log(), "playing an episode", func() (_ struct{}, err error) {
		m, reason, err = e.play(ctx)
		return struct{}{}, err
	})
	return m, reason, err
}

// play begins the episode, plays it to its end or to a limit, and closes it.
func (e *episode) play(ctx context.Context) (rl.Member, string, error) {
	task := environment.Task{Split: e.spec.Split, Index: e.spec.Task,
		Seed: rl.EpisodeSeed(e.spec.Seed, e.spec.Key.Kind, e.spec.Key.Slot, e.member, e.try)}
	running, err := callEnvironment(ctx, e, "Start", func(ctx context.Context) (environment.Episode, error) {
		return e.player.Environment.Start(ctx, task)
	})
	if err != nil {
		return rl.Member{}, "", err
	}
	e.running = running
	e.player.health().Begun()
	defer e.close(ctx)
	if program, ok := running.(environment.Program); ok {
		return e.run(ctx, program)
	}
	prompts, err := callEnvironment(ctx, e, "Prompts", running.Prompts)
	if err != nil {
		return rl.Member{}, "", err
	}
	limit, err := e.rounds(ctx, prompts)
	if err != nil {
		return rl.Member{}, "", err
	}
	return e.result(ctx, limit)
}

// rounds samples and steps until the episode is done, or returns the limit that ends it.
func (e *episode) rounds(ctx context.Context, prompts []environment.Prompt) (limit string, err error) {
	for {
		e.pending = prompts
		requests, limit, err := e.requestsFor(prompts)
		if limit != "" || err != nil {
			return limit, err
		}
		turn, err := e.round(ctx, prompts, requests)
		if errors.Is(err, errDeadline) {
			return stopEpisodeSeconds, nil
		}
		if err != nil {
			return "", err
		}
		if turn.Done {
			e.end(turn)
			return "", nil
		}
		prompts = turn.Prompts
	}
}

// end notes how the last turn ended the episode. An episode that the policy abandons gets the non-terminal reward.
func (e *episode) end(turn environment.Turn) {
	if turn.Finished {
		e.setStop(stopFinished)
	}
	e.abandoned = turn.Abandoned
	if nonterminal := e.spec.Settings.Reward.Nonterminal; e.abandoned && nonterminal != nil {
		e.rewards = append(e.rewards, reward{value: *nonterminal, round: e.turns})
	}
}

// setStop sets the reason for which the episode ended, also for the conversations in which it last asked for a reply.
func (e *episode) setStop(reason string) {
	e.stop = reason
	for _, prompt := range e.pending {
		e.conversation(prompt).stop = reason
	}
}

// round samples replies, calls the environment's Step with them and records the turn. The error is errDeadline if the
// time limit comes first.
func (e *episode) round(ctx context.Context, prompts []environment.Prompt,
	requests []Request) (environment.Turn, error) {
	replies, err := e.sample(ctx, prompts, requests)
	if err != nil {
		return environment.Turn{}, err
	}
	turn, err := e.step(ctx, replies)
	if err != nil {
		return environment.Turn{}, err
	}
	if err := e.record(turn); err != nil {
		return environment.Turn{}, err
	}
	if turn.Ungraded == nil {
		e.recordResults(turn, turn.Done && !turn.Abandoned)
	}
	return turn, nil
}

// step calls the environment's Step with replies, within the time that the episode has left.
func (e *episode) step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	limit := callTimeout
	if e.timeLimit() > 0 {
		limit = e.timeLimit() - e.elapsed
	}
	turn, took, err := callWithin(ctx, e, "Step", limit, func(ctx context.Context) (environment.Turn, error) {
		return e.running.Step(ctx, replies)
	})
	e.elapsed += took
	if err != nil && ctx.Err() == nil && e.isLate() {
		return environment.Turn{}, errDeadline
	}
	return turn, err
}

// timeLimit returns how long the policy and the environment may work on the episode; 0 if there is no limit.
func (e *episode) timeLimit() time.Duration {
	return time.Duration(e.spec.Settings.Limits.EpisodeSeconds) * time.Second
}

// isLate reports whether the episode has reached its time limit.
func (e *episode) isLate() bool { return e.timeLimit() > 0 && e.elapsed >= e.timeLimit() }

// requestsFor renders prompts into requests, or names the limit that forbids one of them.
func (e *episode) requestsFor(prompts []environment.Prompt) (requests []Request, limit string, err error) {
	limits := e.spec.Settings.Limits
	switch {
	case len(prompts) == 0:
		err := errors.New("the environment gives no prompt and is not done")
		return nil, "", &environment.Fault{Permanent: true, Err: err}
	case slices.ContainsFunc(prompts, e.isPastTurns):
		return nil, stopTurns, nil
	case limits.Requests > 0 && e.requests+len(prompts) > int(limits.Requests):
		return nil, stopRequests, nil
	case limits.ToolCalls > 0 && e.toolCalls >= int(limits.ToolCalls):
		return nil, stopToolCalls, nil
	case e.isLate():
		return nil, stopEpisodeSeconds, nil
	}
	for _, prompt := range prompts {
		e.conversation(prompt)
	}
	if err := e.checkPrompts(prompts); err != nil {
		return nil, "", &environment.Fault{Permanent: true, Err: err}
	}
	requests = make([]Request, len(prompts))
	for i, prompt := range prompts {
		requests[i], limit, err = e.request(prompt)
		if limit != "" || err != nil {
			return nil, limit, err
		}
	}
	e.player.expressed(e.requests)
	return requests, "", nil
}

// isPastTurns reports whether the conversation of a prompt has as many replies as it may have.
func (e *episode) isPastTurns(prompt environment.Prompt) bool {
	c, most := e.conversations[prompt.Conversation], int(e.spec.Settings.Limits.Turns)
	return c != nil && most > 0 && len(c.replies) >= most
}

// request renders one prompt.
func (e *episode) request(prompt environment.Prompt) (request Request, limit string, err error) {
	c := e.conversation(prompt)
	if c.recorder != nil {
		c.recorder.Prompt(prompt.Messages, prompt.Tools)
	}
	ids, err := e.player.Renderer.Prompt(c.render(prompt, &c.rendered))
	if err != nil {
		return Request{}, "", &FormatError{Err: err, sampled: e.requests > 0}
	}
	taught, err := e.taughtPrompt(c, prompt)
	if err != nil {
		return Request{}, "", err
	}
	request, limit, err = e.bounded(c, ids, e.stops())
	request.Taught = taught
	return request, limit, err
}

// stops returns the stops of a reply: the run's own stops, or else the stops of the renderer.
func (e *episode) stops() renderer.Stop {
	if own := e.spec.Settings.Sampling.Stop; len(own) > 0 {
		return renderer.Stop{Strings: own}
	}
	return e.player.Renderer.Stop()
}

// bounded returns the request of a conversation for a reply to tokens, within the limits, or the limit that forbids
// it.
func (e *episode) bounded(c *conversation, ids []int32, stop renderer.Stop) (request Request, limit string, err error) {
	c.segments.Share(ids)
	if request, limit = e.within(ids, len(c.replies) == 0); limit != "" {
		return Request{}, limit, nil
	}
	request.Stop = stop
	c.identify(&request, e.spec.Key, e.member, e.try)
	return request, "", nil
}

// within returns a request for a reply to tokens, within the limits, or the limit that forbids it. isFirst says that
// the tokens are the first prompt of their conversation.
func (e *episode) within(ids []int32, isFirst bool) (request Request, limit string) {
	settings := e.spec.Settings
	if most := int(settings.Limits.PromptTokens); most > 0 && isFirst && len(ids) > most {
		return Request{}, stopPromptTokens
	}
	request = Request{Prompt: ids, Sampling: settings.Sampling}
	if most := int(settings.Limits.TrajectoryTokens); most > 0 {
		if len(ids) >= most {
			return Request{}, stopTrajectoryTokens
		}
		request.Sampling.MaxTokens = min(request.Sampling.MaxTokens, int32(most-len(ids)))
	}
	return request, ""
}

// checkPrompts checks the roles and keys of prompts whose conversations are known.
func (e *episode) checkPrompts(prompts []environment.Prompt) error {
	asked := map[string]bool{}
	for _, prompt := range prompts {
		key := prompt.Conversation
		switch {
		case !contract.IsRole(prompt.Role):
			return fmt.Errorf("the environment asks for the role %q: %s", prompt.Role, contract.RoleRule)
		case e.conversations[key].role != prompt.Role:
			return environment.OtherRoleError(key, prompt.Role, e.conversations[key].role)
		case asked[key]:
			return fmt.Errorf("the environment asks twice for a reply in conversation %q", key)
		case len(e.order) > 1 && e.conversations[""] != nil:
			return errors.New("the environment has several conversations, and one of them has no key")
		}
		asked[key] = true
	}
	return nil
}

func (e *episode) conversation(prompt environment.Prompt) *conversation {
	c, ok := e.conversations[prompt.Conversation]
	if !ok {
		c = &conversation{role: prompt.Role, key: prompt.Conversation}
		if e.spec.Transcript {
			c.recorder = &transcript.Recorder{}
		}
		e.conversations[prompt.Conversation] = c
		e.order = append(e.order, c)
	}
	return c
}

// sample samples all replies of a round concurrently. The error is errDeadline when they took too long: then none of
// them counts.
func (e *episode) sample(ctx context.Context, prompts []environment.Prompt,
	requests []Request) ([]environment.Reply, error) {
	samples := make([]Sample, len(requests))
	together, ctx := errgroup.WithContext(ctx)
	for i, request := range requests {
		together.Go(func() error {
			var err error
			samples[i], err = e.reply(ctx, request)
			return err
		})
	}
	if err := together.Wait(); err != nil {
		return nil, err
	}
	var slowest time.Duration
	for _, sample := range samples {
		slowest = max(slowest, sample.Took)
	}
	if e.elapsed += slowest; e.isLate() {
		return nil, errDeadline
	}
	replies := make([]environment.Reply, len(requests))
	e.turns++
	for i, request := range requests {
		var err error
		if replies[i], err = e.recordReply(prompts[i], request, samples[i]); err != nil {
			return nil, err
		}
	}
	used := environment.Usage{Turns: e.turns, ToolCalls: e.toolCalls, SampledTokens: int(e.sampledTokens)}
	for i := range replies {
		replies[i].Usage = used
		// requestsFor has ended an episode that has no calls left.
		if limit := int(e.spec.Settings.Limits.ToolCalls); limit > 0 {
			replies[i].MaxCalls = limit - e.toolCalls
		}
	}
	return replies, nil
}

// reply returns the reply to one request, and counts its tokens whether it is used or not.
func (e *episode) reply(ctx context.Context, request Request) (Sample, error) {
	if e.spec.shared != nil && e.try == 0 && e.turns == 0 {
		return e.spec.shared.of(ctx, request)
	}
	sample, err := e.player.Policy.Sample(ctx, request)
	if err == nil {
		e.player.Progress.count(request, sample)
	}
	return sample, err
}

// recordReply adds a reply to its conversation and to the segments to train on.
func (e *episode) recordReply(prompt environment.Prompt, request Request, sample Sample) (environment.Reply, error) {
	out, kept, err := answer(e.player.Renderer, prompt, request, sample)
	if err != nil {
		return environment.Reply{}, &RefusedError{Err: err}
	}
	c := e.conversation(prompt)
	out.Message.Reply = len(c.replies) + 1
	if c.recorder != nil {
		c.recorder.Reply(out.Message, kept.Parts, out.Malformed)
	}
	out.Seed = request.Seed(rl.UseJudge, e.spec.Seed)
	if err := e.addReply(c, kept, request, sample); err != nil {
		return environment.Reply{}, err
	}
	switch {
	case out.Truncated:
		c.stop = stopLength
	case out.Malformed != "":
		c.stop = stopMalformed
	}
	return out, nil
}

// addReply adds a reply to its conversation, with the stop reason of a reply that a stop has ended. The error is a
// *RefusedError.
func (e *episode) addReply(c *conversation, kept chat.Message, request Request, sample Sample) error {
	c.replies, c.rounds, c.stop = append(c.replies, kept), append(c.rounds, e.turns), stopStop
	if err := c.add(request, sample); err != nil {
		return &RefusedError{Err: err}
	}
	e.requests++
	e.promptTokens += int64(len(request.Prompt))
	e.sampledTokens += int64(len(sample.Tokens))
	return nil
}
