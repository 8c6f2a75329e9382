// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// mostInterruptions is how often a try is played again after an interruption. Each play answers the requests before
// the interruption with the earlier samples, so that an episode gets further with each play in a long outage.
const mostInterruptions = 64

// Replies keeps replies to agents beyond the life of the process, until the group is finished. A worker that begins a
// group again answers a repeated request with the reply that was paid for.
type Replies interface {
	// Reply returns the reply that was kept for a request of a group. It is inherited if an earlier process has paid for
	// it, and this is the first time that this process asks for it.
	Reply(key rl.Key, request rl.Digest) (reply []byte, inherited, ok bool)
	// KeepReply keeps the reply to a request, if the store has room for it.
	KeepReply(key rl.Key, request rl.Digest, reply []byte)
}

// interruptions counts the interruptions of one try of a member, and holds the try's samples: the next play of the
// try makes the same requests, perhaps while the endpoint does not answer.
type interruptions struct {
	times int
	// store keeps replies by the group and the seed of the spec; nil if no reply outlives the process.
	store Replies
	spec  *Spec

	mu    sync.Mutex
	known map[rl.Request]Sample
	// frozen are the replies of models beside the policy.
	frozen map[rl.Request]environment.Completed
}

func (p *Player) interruptionsOf(spec *Spec) *interruptions {
	return &interruptions{store: p.Replies, spec: spec}
}

// origin is the source of a sample.
type origin int

const (
	// unknown is a request that has to be sampled.
	unknown origin = iota
	// remembered is a sample of an earlier play of the try, which the group has counted.
	remembered
	// restored is a sample of an earlier play of the group.
	restored
	// inherited is a sample of an earlier process of the worker, which this process has not counted.
	inherited
)

// sample returns the sample for a request, and its origin.
func (i *interruptions) sample(request rl.Request) (Sample, origin) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if sample, ok := i.known[request]; ok {
		return sample, remembered
	}
	if i.store == nil {
		return Sample{}, unknown
	}
	var sample Sample
	text, isInherited, ok := i.store.Reply(i.spec.Key, i.identity(request))
	if !ok || json.Unmarshal(text, &sample) != nil {
		return Sample{}, unknown
	}
	i.know(request, sample)
	if isInherited {
		return sample, inherited
	}
	return sample, restored
}

// frozenReply returns the reply of a model beside the policy in an earlier play of the try.
func (i *interruptions) frozenReply(request rl.Request) (environment.Completed, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	out, ok := i.frozen[request]
	return out, ok
}

// keepFrozen keeps the reply of a model beside the policy for the next play of the try. A later process asks for the
// reply again, under the same number.
func (i *interruptions) keepFrozen(request rl.Request, out environment.Completed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.frozen == nil {
		i.frozen = map[rl.Request]environment.Completed{}
	}
	i.frozen[request] = out
}

// know keeps a sample for the next play of the try. The lock is held.
func (i *interruptions) know(request rl.Request, sample Sample) {
	if i.known == nil {
		i.known = map[rl.Request]Sample{}
	}
	i.known[request] = sample
}

// keep keeps the sample for a request.
func (i *interruptions) keep(request rl.Request, sample Sample) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.know(request, sample)
	if i.store == nil {
		return
	}
	if text, err := json.Marshal(sample); err == nil { // JSON has no infinite log-probabilities: such a reply is refused.
		i.store.KeepReply(i.spec.Key, i.identity(request), text)
	}
}

// identity returns a digest of everything that decides a reply, except the policy, which is part of the group's key.
func (i *interruptions) identity(request rl.Request) rl.Digest {
	return rl.Digest(sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d %q %x %d %d", request.Kind, request.Slot, request.Member,
		request.Try, request.Conversation, request.Content, request.Repeat, i.spec.Seed)))
}
