// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// frozenCall is a request to a model beside the policy, with its reply.
type frozenCall struct {
	request rl.Request
	asked   environment.Completion
	out     environment.Completed
}

// mostFrozen bounds the calls that a transcript shows.
const mostFrozen = 32

// completeFrozen answers a request to a model beside the policy. The request belongs to no conversation that is
// trained on, but limits.requests counts it.
func (d *driver) completeFrozen(ctx context.Context, asked environment.Completion) (environment.Completed, error) {
	request, err := d.admitFrozen(asked)
	if err != nil {
		return environment.Completed{}, err
	}
	clock := d.episode.recorder.current()
	defer clock.pause()()
	out, err := d.frozenOnce(ctx, asked, request)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agent.open--
	d.agent.unanswered--
	switch {
	case d.ended:
		return environment.Completed{}, errEnded
	case err != nil && ctx.Err() != nil:
		return environment.Completed{}, err
	case err != nil:
		return environment.Completed{}, d.failUnlessRefused(err)
	}
	if d.episode.timeLimit() == 0 {
		clock.renew()
	}
	out.ID = fmt.Sprintf("%016x", request.Seed(rl.UseJudge, 0))
	for i, call := range out.Message.Calls {
		if call.ID == "" {
			out.Message.Calls[i].ID = fmt.Sprintf("call_%s_%d", out.ID, i)
		}
	}
	d.episode.frozen = append(d.episode.frozen, frozenCall{request, asked, out})
	return out, nil
}

// admitFrozen returns the identity of a request, from which its seed follows. The request is open from now on.
func (d *driver) admitFrozen(asked environment.Completion) (rl.Request, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return rl.Request{}, errEnded
	}
	if err := checkFrozen(asked); err != nil {
		return rl.Request{}, err
	}
	if d.isExpired() {
		return rl.Request{}, &environment.LimitError{Limit: stopEpisodeSeconds}
	}
	if most := int(d.episode.spec.Settings.Limits.Requests); most > 0 && d.made >= most {
		d.agent.limit = stopRequests
		return rl.Request{}, &environment.LimitError{Limit: stopRequests}
	}
	content, err := contentOfFrozen(asked)
	if err != nil {
		return rl.Request{}, d.fail(err)
	}
	if d.agent.asked == nil {
		d.agent.asked = map[rl.Digest]int{}
	}
	key := d.episode.spec.Key
	request := rl.Request{Kind: key.Kind, Slot: key.Slot, Member: d.episode.member, Try: d.episode.try,
		Conversation: environment.FrozenPrefix + asked.FrozenName, Content: content, Repeat: d.agent.asked[content]}
	d.agent.asked[content]++
	d.made++
	d.agent.open++
	d.agent.unanswered++ // The policy does not answer it, so it overlaps no request of the policy.
	return request, nil
}

func checkFrozen(asked environment.Completion) error {
	switch {
	case asked.Frozen == nil:
		return &environment.RequestError{Message: "The frozen model cannot be asked here."}
	case asked.Scored:
		return &environment.RequestError{Message: "The log-probabilities of a prompt are those of the policy. " +
			"Remove echo or logprobs."}
	case asked.Unanswered:
		return &environment.RequestError{Message: "A frozen model needs a max_tokens of at least 1."}
	}
	return nil
}

// contentOfFrozen returns a digest of a request to a model beside the policy.
func contentOfFrozen(asked environment.Completion) (rl.Digest, error) {
	asked.Frozen = nil
	text, err := json.Marshal(asked)
	if err != nil {
		return rl.Digest{}, fmt.Errorf("encoding the request to a frozen model: %w", err)
	}
	return sha256.Sum256(text), nil
}

// frozenOnce asks a model, unless an earlier play of this try has its reply. Its calls and tokens count as a judge's.
func (d *driver) frozenOnce(ctx context.Context, asked environment.Completion,
	request rl.Request) (environment.Completed, error) {
	if out, ok := d.episode.before.frozenReply(request); ok {
		return out, nil
	}
	out, err := asked.Frozen.Complete(ctx, asked, request.Seed(rl.UseJudge, d.episode.spec.Seed))
	if err != nil {
		if refused := (*environment.RequestError)(nil); !errors.As(err, &refused) && ctx.Err() == nil {
			d.episode.recorder.CountJudge(environment.JudgeUsage{Calls: 1, Errors: 1})
		}
		return environment.Completed{}, err
	}
	d.episode.recorder.CountJudge(environment.JudgeUsage{Calls: 1, PromptTokens: int64(out.PromptTokens),
		SampledTokens: int64(len(out.Tokens))})
	d.episode.before.keepFrozen(request, out)
	return out, nil
}

// countFrozen returns the number of tokens that a request to a model beside the policy has.
func (d *driver) countFrozen(asked environment.Completion) (int, error) {
	d.mu.Lock()
	ended := d.ended
	d.mu.Unlock()
	if ended {
		return 0, errEnded
	}
	if err := checkFrozen(asked); err != nil {
		return 0, err
	}
	return asked.Frozen.CountTokens(d.asking, asked)
}

// frozenParts returns the requests to models beside the policy, for people, in an order that does not depend on their
// replies. Their keys differ from the keys of conversations that train.
func (e *episode) frozenParts() []transcript.Part {
	calls := e.frozen
	slices.SortFunc(calls, func(a, b frozenCall) int {
		return cmp.Or(cmp.Compare(a.request.Conversation, b.request.Conversation),
			slices.Compare(a.request.Content[:], b.request.Content[:]), cmp.Compare(a.request.Repeat, b.request.Repeat))
	})
	var parts []transcript.Part
	for i, call := range calls[:min(len(calls), mostFrozen)] {
		recorder := &transcript.Recorder{}
		recorder.Prompt(call.asked.Messages, call.asked.Tools)
		recorder.Reply(call.out.Message, call.out.Message.Parts, "")
		parts = append(parts, transcript.Part{Role: call.request.Conversation,
			Key: fmt.Sprintf("%s/%d", call.request.Conversation, i+1), StopReason: stopStop, Recorder: recorder})
	}
	return parts
}
