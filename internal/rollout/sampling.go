// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// policy samples the replies of one group.
type policy struct {
	worker *Worker
	group  *activeGroup
}

// maxMisses is how often the endpoint may deny the sampling session of one request. The session is made again each
// time.
const maxMisses = 8

// maxReposts is how often a request is posted again under the next counter. After that the policy counts as missing,
// and the request is sampled in another session.
const maxReposts = 255

// maxRefusals is how often a request is refused before it counts as invalid, each time under the next counter.
const maxRefusals = 3

// retry is the way to repeat a sample that failed.
type retry uint8

const (
	// retrySame posts the same request.
	retrySame retry = iota
	// retryNext posts the request under the next counter: the future is lost, or the result failed.
	retryNext
	// retrySession makes the sampling session again.
	retrySession
	// retryRefused posts the request under the next counter a few times: it is invalid, or was refused by mistake.
	retryRefused
	// retryOutage posts the same request until the endpoint answers it: a server that can sample does not fail like
	// this.
	retryOutage
)

func retryFor(failure error) retry {
	var failed *client.Error
	if !errors.As(failure, &failed) {
		return retrySame
	}
	switch failed.Category {
	case tinker.CategoryProtocol:
		if failed.Method != "" && failed.RequestID == "" {
			return retryOutage // The submit failed, and the same number finds its future.
		}
		return retryNext
	case tinker.CategoryFutureLost, tinker.CategoryServer, tinker.CategoryUnknown, tinker.CategoryConflict:
		return retryNext
	case tinker.CategoryNotFound:
		return retrySession
	case tinker.CategoryUser, tinker.CategoryTooLarge:
		return retryRefused
	case tinker.CategoryUnsupported:
		return retryOutage
	default:
		return retrySame
	}
}

// failures counts the failures of a request.
type failures struct {
	// reposts is the counter that the request is posted under.
	reposts int
	// all counts every failure, misses the failures of the sampling session, and refusals the refusals of the request
	// itself.
	all, misses, refusals int
	// note, if not nil, receives whether the sampler may still draw the token that a canary asked for.
	note func(unanswered bool)
}

// Sample implements episode.Policy. It tries again after every transient failure: a lost future, a lost session, an
// endpoint that fails or that refuses a request that every sampler accepts. An error is a *episode.RefusedError, a
// *policyMissingError or the context's.
func (p *policy) Sample(ctx context.Context, request episode.Request) (episode.Sample, error) {
	samples, err := p.draw(ctx, request, rl.UsePolicy, 1)
	if err != nil {
		return episode.Sample{}, err
	}
	return samples[0], nil
}

// SampleGroup implements episode.Policy. It tries again and fails as Sample does.
func (p *policy) SampleGroup(ctx context.Context, request episode.Request, members int) ([]episode.Sample, error) {
	return p.draw(ctx, request, rl.UseSharedPrompt, members)
}

// draw returns count replies to one request.
func (p *policy) draw(ctx context.Context, request episode.Request, use rl.Use, count int) ([]episode.Sample, error) {
	var samples []episode.Sample
	seed := request.Seed(use, p.group.lease.Load().Seed)
	from := func() weights { return weightsOf(p.group.lease.Load().Sampler) }
	err := p.repeat(ctx, request, use, from, func(number int64) (key samplerKey, err error) {
		samples, key, err = p.once(ctx, tinker.SampleRequest{
			NumSamples: count, SeqID: &number, Prompt: tinker.Text(request.Prompt),
			SamplingParams: tinker.SamplingParams{
				MaxTokens: new(int(request.Sampling.MaxTokens)), Seed: new(p.worker.seedFor(int64(seed), count)),
				Stop:        tinker.Stop(request.Stop),
				Temperature: *request.Sampling.Temperature, TopK: topK(request.Sampling), TopP: request.Sampling.TopP,
			},
		})
		return key, err
	})
	return samples, err
}

// topK returns the limit in the form of the Tinker API, in which -1 means all tokens.
func topK(sampling playing.Sampling) int { return int(cmp.Or(sampling.TopK, -1)) }

// repeat posts a request until it succeeds or cannot succeed any more. It calls post with the number of the request;
// the key names the sampling session, which samples from the given weights.
func (p *policy) repeat(
	ctx context.Context, request episode.Request, use rl.Use, from func() weights,
	post func(number int64) (samplerKey, error),
) error {
	counts := failures{note: p.group.note}
	for {
		if counts.reposts > maxReposts {
			return &policyMissingError{err: fmt.Errorf("sampling: the endpoint lost the sample %d times", counts.reposts)}
		}
		key, err := p.admit(ctx, request.Number(use, counts.reposts), post)
		if err == nil {
			p.worker.config.Pressure.succeed(counts.all > 0)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := p.worker.prepareRetry(ctx, err, key, from(), &counts); err != nil {
			return err
		}
		p.worker.config.Logger.Debug("sampling again", "slot", p.group.key.Slot, "member", request.Member,
			"reposts", counts.reposts, "failures", counts.all, "err", err)
		if err := wait.Sleep(ctx, samplePauses.After(counts.all)); err != nil {
			return err
		}
		counts.all++
	}
}

// admit posts a request once, when there is room for one more.
func (p *policy) admit(ctx context.Context, number int64, post func(number int64) (samplerKey, error)) (samplerKey,
	error) {
	if err := p.worker.samples.enter(ctx, rank(p.group.key)); err != nil {
		return samplerKey{}, err
	}
	defer p.worker.samples.leave()
	return post(number)
}

// prepareRetry prepares the request to be posted again after a failure. It reports a failure for which the client has
// reported no event, unless a retry is likely to succeed. An error means that the request is not to be repeated. The
// key is the sampling session that the request was posted in, which samples from the given weights.
func (w *Worker) prepareRetry(ctx context.Context, failure error, key samplerKey, from weights,
	counts *failures) error {
	var missing *policyMissingError
	var refused *episode.RefusedError
	if errors.As(failure, &missing) || errors.As(failure, &refused) {
		return failure
	}
	switch retryFor(failure) {
	case retryRefused:
		return w.countRefusal(ctx, failure, from, counts)
	case retryOutage:
		w.config.Pressure.fail(problem.SamplingRefused, failure)
	case retryNext:
		w.config.Pressure.fail(problem.EndpointFailing, failure)
		counts.reposts++
	case retrySession:
		w.sessions.forget(key, nil)
		if counts.misses++; counts.misses > maxMisses {
			return &policyMissingError{err: failure}
		}
	}
	return nil
}

// countRefusal counts a refusal if the sampler accepts a canary, and returns an error for the last refusal. Otherwise
// the endpoint is out of order: neither this refusal nor the earlier ones say anything about the request.
func (w *Worker) countRefusal(ctx context.Context, failure error, from weights, counts *failures) error {
	asking := ctx
	if counts.note != nil {
		asking = client.WithObserver(ctx, func(event client.Event) { counts.note(event.Unanswered) })
	}
	err := w.canaries.accepts(asking, from)
	if err != nil && counts.note != nil {
		counts.note(client.IsUnanswered(err))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.config.Pressure.fail(problem.SamplingRefused, failure)
		w.config.Logger.Debug("sampler refuses what it should accept", "refusal", failure, "err", err)
		counts.refusals = 0
		if client.IsResult(failure) {
			counts.reposts++ // the failure stays the result of its number
		}
		return nil
	}
	counts.refusals++
	counts.reposts++
	if counts.refusals >= maxRefusals {
		return &episode.RefusedError{Err: failure}
	}
	return nil
}

// samplePauses are the pauses before a sample is tried again. There is no pause before the first retry.
var samplePauses = wait.Backoff{First: time.Second, Longest: 30 * time.Second}

// seedFor returns the seed that is sent instead of a seed of 63 bits. Endpoints that take only short seeds may add
// the number of a sample to the seed, so the seed of a request leaves room for its samples.
func (w *Worker) seedFor(seed int64, samples int) int64 {
	const longest = 1<<31 - 1
	if play := w.play.Load(); play != nil && play.play.ShortSeeds {
		return min(seed&longest, longest-int64(samples-1))
	}
	return seed
}

// once posts a request in the group's sampling session, whose key it returns.
func (p *policy) once(ctx context.Context, posted tinker.SampleRequest) ([]episode.Sample, samplerKey, error) {
	lease := p.group.lease.Load()
	key, session, err := p.worker.sessions.sampler(ctx, lease.SamplingSession, weightsOf(lease.Sampler))
	if err != nil {
		return nil, samplerKey{}, err
	}
	posted.SamplingSession = session
	// The time of a sample begins anew with each obstacle that the endpoint reports: a pause, a limit of its rate, an
	// outage.
	var began atomic.Pointer[time.Time]
	begin := func() { began.Store(new(time.Now())) }
	begin()
	ctx = client.WithObserver(ctx, func(event client.Event) {
		begin()
		p.group.note(event.Unanswered)
	})
	result, err := p.worker.config.Endpoint.Sample(ctx, posted)
	if err != nil {
		p.group.note(client.IsUnanswered(err))
		return nil, key, fmt.Errorf("sampling: %w", err)
	}
	took := time.Since(*began.Load())
	samples := make([]episode.Sample, len(result.Sequences))
	for i, reply := range result.Sequences {
		samples[i] = episode.Sample{Tokens: reply.Tokens, Logprobs: reply.Logprobs,
			Stopped: reply.StopReason == tinker.StopReasonStop, Took: took}
	}
	return samples, key, nil
}

var _ episode.Policy = (*policy)(nil)
