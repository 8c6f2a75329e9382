// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// maxKey bounds the key of a conversation, in bytes.
const maxKey = 63

// errEnded reports a request of an episode that has ended.
var errEnded = errors.New("the episode has ended")

// driver answers the requests of a program. Each request is admitted and sampled by itself; the episode is recorded
// under a lock. No record depends on the order in which requests are made or answered.
type driver struct {
	episode *episode
	// asking is the context of the program, and cancel ends it.
	asking context.Context
	cancel context.CancelCauseFunc

	mu sync.Mutex
	// made counts the requests that were admitted.
	made int
	// open are the conversations that have an open request.
	open map[string]bool
	// agent has the requests of an agent, which do not say which conversation they continue.
	agent agent
	// ended is set once nothing more is recorded. err is the reason; nil if the program has ended by itself.
	ended bool
	err   error
}

var _ environment.Policy = (*driver)(nil)

// run plays the episode of a program.
func (e *episode) run(ctx context.Context, program environment.Program) (rl.Member, string, error) {
	if e.spec.Settings.Sampling.SharesPrompt() {
		return rl.Member{}, "", permanent("sampling.sharedPrompt buys one first prompt for a group, and a program asks for " +
			"each episode: remove sampling.sharedPrompt")
	}
	if e.spec.Settings.Limits.ToolCalls > 0 {
		return rl.Member{}, "", permanent("limits.toolCalls counts the calls that an environment runs, and a program runs " +
			"its own: remove limits.toolCalls")
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &driver{episode: e, asking: running, cancel: cancel, open: map[string]bool{}}
	d.agent.expired = make(chan struct{})
	if e.timeLimit() > 0 {
		e.expire = d.expireAgent
	}
	turn, took, err := callWithin(running, e, "Run", cmp.Or(e.timeLimit(), callTimeout),
		func(ctx context.Context) (environment.Turn, error) {
			// ctx ends with this call. A request that is open then is a fault of the program, and not withdrawn.
			defer d.conclude()
			return program.Run(ctx, d)
		})
	e.elapsed, e.expire = took, nil
	if err = d.end(err); ctx.Err() != nil {
		return rl.Member{}, "", ctx.Err()
	}
	if err := d.plant(turn); err != nil {
		return rl.Member{}, "", err
	}
	if limit := (*environment.LimitError)(nil); errors.As(err, &limit) {
		return e.limited(limit.Limit)
	}
	if limit := d.agent.limit; err == nil && limit != "" && len(e.order) > 1 {
		return e.limited(limit)
	}
	if err == nil {
		err = e.concludes(turn)
	}
	if err != nil {
		return rl.Member{}, "", err
	}
	return e.graded("")
}

// conclude ends the recording: requests that are open stay so, and further requests are refused.
func (d *driver) conclude() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
}

// end ends the recording, and returns an error if the program did not come to its end; err is the program's own
// error.
func (d *driver) end(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	switch {
	case d.err != nil:
		return d.err
	case err != nil && d.episode.isLate():
		return &environment.LimitError{Limit: stopEpisodeSeconds}
	case err == nil && d.agent.open > 0:
		return permanent("the agent ended while a request was open: await each request before the end")
	case err == nil && len(d.open) > 0:
		return permanent("the program ended while %s had an open request: await each request before you return, since "+
			"whether a reply comes in time would decide what is trained on", d.anyOpen())
	}
	return err
}

func (d *driver) anyOpen() string {
	for key := range d.open {
		return nameOfConversation(key)
	}
	return "no conversation"
}

func nameOfConversation(key string) string {
	if key == "" {
		return "the conversation without a key"
	}
	return fmt.Sprintf("the conversation %q", key)
}

// concludes records the result of a program that has come to its end.
func (e *episode) concludes(turn environment.Turn) error {
	if len(e.order) == 0 {
		return permanent("the program never asked the policy")
	}
	slices.SortStableFunc(turn.Rewards, func(a, b environment.Reward) int {
		return cmp.Compare(a.Conversation, b.Conversation)
	})
	if err := e.record(turn); err != nil {
		return err
	}
	e.pending = nil
	for _, c := range e.order {
		e.pending = append(e.pending, environment.Prompt{Role: c.role, Conversation: c.key})
	}
	e.recordResults(turn, true)
	return nil
}

// limited returns the member of a program that a limit ended. The program can no longer grade its episode. If
// conversations have keys, there may be several, and the order of replies decides how long each of them is: the
// member is left out.
func (e *episode) limited(limit string) (rl.Member, string, error) {
	hasKeys := slices.ContainsFunc(e.order, func(c *conversation) bool { return c.key != "" })
	if hasKeys || len(e.order) == 0 {
		return rl.Member{Outcome: rl.Deadline, StopReason: limit}, fmt.Sprintf("ended by the limit %s", limit), nil
	}
	e.stop, e.order[0].stop = limit, limit
	return e.graded(limit)
}

// permanent returns a fault of the program that a further try would have as well.
func permanent(format string, args ...any) error {
	return &environment.Fault{Permanent: true, Err: fmt.Errorf(format, args...)}
}

// Chat implements environment.Policy.
func (d *driver) Chat(ctx context.Context, prompt environment.Prompt) (environment.Reply, error) {
	var out environment.Reply
	err := d.ask(ctx, prompt, func() (Request, string, error) { return d.episode.request(prompt) },
		func(request Request, sample Sample) (err error) {
			out, err = d.episode.recordReply(prompt, request, sample)
			return err
		})
	return out, err
}

// Sample implements environment.Policy.
func (d *driver) Sample(ctx context.Context, prompt environment.TokenPrompt) (environment.TokenReply, error) {
	var out environment.TokenReply
	place := environment.Prompt{Role: prompt.Role, Conversation: prompt.Conversation}
	err := d.ask(ctx, place, func() (Request, string, error) {
		return d.episode.bounded(d.episode.conversation(place), prompt.Tokens, d.stopOf(prompt))
	}, func(request Request, sample Sample) error {
		c := d.episode.conversation(place)
		if err := d.episode.addReply(c, chat.Message{}, request, sample); err != nil {
			return err
		}
		if !sample.Stopped {
			c.stop = stopLength
		}
		out = environment.TokenReply{Tokens: sample.Tokens, Truncated: !sample.Stopped}
		return nil
	})
	return out, err
}

// stopOf returns the stops of the reply to tokens.
func (d *driver) stopOf(prompt environment.TokenPrompt) renderer.Stop {
	switch {
	case len(prompt.StopTokens) > 0:
		return renderer.Stop{Tokens: prompt.StopTokens}
	case len(prompt.StopStrings) > 0:
		return renderer.Stop{Strings: prompt.StopStrings}
	}
	return d.episode.stops()
}

// ask makes one request of a conversation: it is admitted by the limits, sampled and recorded.
func (d *driver) ask(ctx context.Context, prompt environment.Prompt, build func() (Request, string, error),
	record func(Request, Sample) error) error {
	request, err := d.admit(prompt, build)
	if err != nil {
		return err
	}
	// The clock pauses, since the program waits, or works beside its requests.
	clock := d.episode.recorder.current()
	defer clock.pause()()
	sample, err := d.episode.reply(ctx, request)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ended:
		return errEnded
	case err != nil && ctx.Err() != nil: // The program's process has ended, and a further one may ask again.
		d.withdraw(request)
		return err
	case err == nil && d.episode.timeLimit() == 0:
		clock.renew()
	case err == nil && clock.count(sample.Took):
		err = &environment.LimitError{Limit: stopEpisodeSeconds}
	}
	if err == nil {
		err = record(request, sample)
	}
	if err != nil {
		return d.fail(err)
	}
	delete(d.open, prompt.Conversation)
	return nil
}

// withdraw takes back an open request.
func (d *driver) withdraw(request Request) {
	delete(d.open, request.Conversation)
	d.episode.conversations[request.Conversation].withdraw(request)
	d.made--
}

// admit returns the request of a prompt, whose conversation has an open request from now on.
func (d *driver) admit(prompt environment.Prompt, build func() (Request, string, error)) (Request, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return Request{}, errEnded
	}
	if err := d.checkProgram(prompt); err != nil {
		return Request{}, d.fail(err)
	}
	c := d.episode.conversation(prompt)
	if err := d.episode.checkPrompts([]environment.Prompt{prompt}); err != nil {
		return Request{}, d.fail(permanent("%w", err))
	}
	var request Request
	limit := stopTurns
	if !d.episode.isPastTurns(prompt) {
		var err error
		if request, limit, err = build(); err != nil {
			return Request{}, d.fail(err)
		}
	}
	if limit != "" {
		c.stop = limit
		return Request{}, &environment.LimitError{Limit: limit}
	}
	if most := int(d.episode.spec.Settings.Limits.Requests); most > 0 && d.made >= most {
		// The order of requests decides which conversation makes one request too many, so no conversation gets this limit
		// as its stop reason.
		return Request{}, d.fail(&environment.LimitError{Limit: stopRequests})
	}
	d.episode.player.expressed(d.made)
	d.made++
	d.open[prompt.Conversation] = true
	return request, nil
}

// checkProgram checks the rules of conversations that a program may break.
func (d *driver) checkProgram(prompt environment.Prompt) error {
	key := prompt.Conversation
	_, known := d.episode.conversations[key]
	switch {
	case d.open[key] && key == "":
		return permanent("the program makes two requests at once, and they have no key: give each conversation a key of " +
			"its own, since the order in which requests come would decide their samples")
	case d.open[key]:
		return permanent("the program makes two requests at once in %s: await the first, or give each a key of its own",
			nameOfConversation(key))
	case len(key) > maxKey:
		return permanent("the key of a conversation has more than %d bytes: %.80q", maxKey, key)
	case !known && len(d.episode.order) >= rl.MaxTrajectories:
		return permanent("the program has more than %d conversations", rl.MaxTrajectories)
	}
	return nil
}

// fail ends the episode with an error, before its program ends.
func (d *driver) fail(err error) error {
	if !d.ended {
		d.ended, d.err = true, err
		d.cancel(err)
	}
	return err
}
