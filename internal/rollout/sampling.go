// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// policy samples the replies of one group.
type policy struct {
	worker  *Worker
	playing *playing
}

// maxMisses is how often in a row the endpoint may deny a sampling session that it has just made.
const maxMisses = 8

// maxRefusals is how often a request is refused before it is taken for invalid. An environment that is no
// function of its seed may ask another thing under a number that an earlier play of the group has used:
// that is refused, too, but not under the next counter.
const maxRefusals = 3

// remedy is what to do about a sample that failed.
type remedy uint8

const (
	// again posts the same request.
	again remedy = iota
	// repost asks under the next counter: the promise is lost, or the result failed.
	repost
	// reopen makes the sampling session anew.
	reopen
	// refuse says that the request is invalid, or that its number was used for another.
	refuse
	// leave gives the group up.
	leave
)

func remedyFor(category tinker.Category) remedy {
	switch category {
	case tinker.CategoryFutureLost, tinker.CategoryServer, tinker.CategoryUnknown, tinker.CategoryConflict, tinker.CategoryProtocol:
		return repost
	case tinker.CategoryNotFound:
		return reopen
	case tinker.CategoryUser:
		return refuse
	case tinker.CategoryUnsupported:
		return leave
	default:
		return again
	}
}

// troubles counts what a request has met.
type troubles struct {
	// reposts is the counter that the request is posted under.
	reposts int
	// failures in all, misses of the sampling session, and refusals.
	failures, misses, refusals int
}

// Sample implements episode.Policy. It goes on through everything that passes: lost promises, a session that
// is gone, an endpoint that fails. An error is a *episode.RefusedError, a *policyGoneError or the context's.
func (p *policy) Sample(ctx context.Context, request episode.Request) (episode.Sample, error) {
	var met troubles
	for {
		sample, key, err := p.once(ctx, request, met.reposts)
		if err == nil {
			return sample, nil
		}
		if ctx.Err() != nil {
			return episode.Sample{}, ctx.Err()
		}
		if err := p.mend(err, key, &met); err != nil {
			return episode.Sample{}, err
		}
		p.worker.config.Logger.Debug("sampling again", "slot", p.playing.key.Slot, "member", request.Member,
			"reposts", met.reposts, "failures", met.failures, "error", err)
		if err := pause(ctx, sampleDelay(met.failures)); err != nil {
			return episode.Sample{}, err
		}
		met.failures++
	}
}

// mend does what is to be done about a failure before the request is posted again; an error says that it
// is of no use to. key is the sampling session that the request was posted in.
func (p *policy) mend(failure error, key samplerKey, met *troubles) error {
	var gone *policyGoneError
	if errors.As(failure, &gone) {
		return failure
	}
	switch remedyFor(client.CategoryFrom(failure)) {
	case refuse:
		met.refusals++
		met.reposts++
	case leave:
		return &policyGoneError{err: failure}
	case repost:
		met.reposts++
	case reopen:
		p.worker.sessions.forget(key, nil)
		met.misses++
	}
	if met.refusals >= maxRefusals {
		return &episode.RefusedError{Err: failure}
	}
	if met.misses > maxMisses {
		return &policyGoneError{err: failure}
	}
	return nil
}

// sampleDelay is none before the first repeat, then 1 s, doubling up to 32 s.
func sampleDelay(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return time.Second << min(failures-1, 5)
}

// once asks for the reply under one number. The key is that of the sampling session it was asked in.
func (p *policy) once(ctx context.Context, request episode.Request, reposts int) (episode.Sample, samplerKey, error) {
	group, lease := p.playing.key, p.playing.currentLease()
	number, err := rl.SequenceID(group.Kind, group.Slot, request.Member, request.Request, request.Try, reposts)
	if err != nil {
		return episode.Sample{}, samplerKey{}, &policyGoneError{err: err}
	}
	if err := p.worker.samples.enter(ctx, rank(group)); err != nil {
		return episode.Sample{}, samplerKey{}, err
	}
	defer p.worker.samples.leave()
	key, session, err := p.worker.sessions.sampler(ctx, lease.SamplingSession, lease.Sampler)
	if err != nil {
		return episode.Sample{}, samplerKey{}, err
	}
	seed := int64(rl.Seed(lease.Seed, group.Kind, group.Slot, request.Member, request.Request, request.Try))
	result, err := p.worker.config.Endpoint.Sample(ctx, tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(request.Prompt), SamplingSession: session, SeqID: &number,
		SamplingParams: tinker.SamplingParams{
			MaxTokens: &request.Sampling.MaxTokens, Seed: &seed, Stop: tinker.Stop(request.Stop),
			Temperature: request.Sampling.Temperature, TopK: request.Sampling.TopK, TopP: request.Sampling.TopP,
		},
	})
	if err != nil {
		return episode.Sample{}, key, fmt.Errorf("sampling: %w", err)
	}
	reply := result.Sequences[0]
	stopped := reply.StopReason == tinker.StopReasonStop
	return episode.Sample{Tokens: reply.Tokens, Logprobs: reply.Logprobs, Stopped: stopped}, key, nil
}

var _ episode.Policy = (*policy)(nil)
