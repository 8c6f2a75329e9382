// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// mostShared is the largest number of members that share a request, since an endpoint may refuse a request for more
// samples. It affects the samples of larger groups, and so the weights.
const mostShared = 128

// sharedReplies are the replies of the first round, where all members of a group have the same prompts. Each prompt is
// sent once for all members, or for each mostShared of them, and sample i of the request belongs to its i-th member.
// It does not matter which member asks first: the request is the same. The request is made once, so that a member
// that is played again as the same try has the same reply. A further try of a member does not take part.
type sharedReplies struct {
	members int
	// draw samples the replies of several members. It ends with the group, not with the member that asks first.
	draw func(request Request, members int) ([]Sample, error)

	mu    sync.Mutex
	byKey map[sharedKey]*sharedReply
}

// sharedKey is a request: the first of its members, and the conversation that asks in their episodes.
type sharedKey struct {
	member       int
	conversation string
}

// sharedReply is a request that was made.
type sharedReply struct {
	prompt []int32
	// done is closed once there are samples, or an error.
	done    chan struct{}
	samples []Sample
	err     error
}

// errPromptsDiffer reports an environment whose episodes of one task begin with different prompts.
var errPromptsDiffer = errors.New("episodes of one task have different prompts, of which sampling.sharedPrompt sends " +
	"one: remove sampling.sharedPrompt")

// shareReplies returns nil for a group whose members make requests of their own. ctx is the context of the group.
func (p *Player) shareReplies(ctx context.Context, spec Spec) *sharedReplies {
	if !spec.Settings.Sampling.SharesPrompt() || spec.GroupSize < 2 {
		return nil
	}
	draw := func(request Request, members int) ([]Sample, error) {
		samples, err := p.Policy.SampleGroup(ctx, request, members)
		if err == nil {
			p.Progress.count(request, samples...)
		}
		return samples, err
	}
	return &sharedReplies{members: spec.GroupSize, draw: draw, byKey: map[sharedKey]*sharedReply{}}
}

// of returns the reply to a member's request. If the request fails, each member has the error.
func (s *sharedReplies) of(ctx context.Context, request Request) (Sample, error) {
	own := request.Member % mostShared
	first := request.Member - own
	reply, made := s.request(sharedKey{first, request.Conversation}, request.Prompt)
	if !made {
		shared := request
		shared.Member = first
		reply.samples, reply.err = s.draw(shared, min(mostShared, s.members-first))
		close(reply.done)
	}
	select {
	case <-reply.done:
	case <-ctx.Done():
		return Sample{}, ctx.Err()
	}
	if reply.err != nil {
		return Sample{}, reply.err
	}
	if !slices.Equal(reply.prompt, request.Prompt) {
		return Sample{}, &environment.Fault{Permanent: true, Err: errPromptsDiffer}
	}
	return reply.samples[own], nil
}

// request returns the request of a key, and whether another member has made it. If not, the caller is to make it.
func (s *sharedReplies) request(key sharedKey, prompt []int32) (reply *sharedReply, made bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, made = s.byKey[key]
	if !made {
		reply = &sharedReply{prompt: prompt, done: make(chan struct{})}
		s.byKey[key] = reply
	}
	return reply, made
}
