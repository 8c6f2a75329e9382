// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func (p *fakeWorker) group(ctx context.Context, lease exchange.Lease) (rl.Group, error) {
	group := rl.Group{Key: lease.Key, Environment: lease.Environment}
	if p.behavior.delay != nil && lease.Key.Kind == rl.Train {
		pauseFor(ctx, p.behavior.delay(lease.Key.Slot))
	}
	if p.behavior.wait != nil && lease.Key.Kind == rl.Train {
		p.behavior.wait(ctx, lease.Key.Slot)
	}
	if p.behavior.blockEvaluation && lease.Key.Kind == rl.Evaluate {
		<-ctx.Done()
		return rl.Group{}, ctx.Err()
	}
	if p.behavior.delayEvaluation != nil && lease.Key.Kind == rl.Evaluate {
		select {
		case <-p.behavior.delayEvaluation:
		case <-ctx.Done():
			return rl.Group{}, ctx.Err()
		}
	}
	if p.behavior.outcome != nil && lease.Key.Kind == rl.Train {
		if outcome := p.behavior.outcome(lease.Key.Slot); outcome != rl.Usable {
			return group.Tombstone(outcome, "scripted"), ctx.Err()
		}
	}
	type result struct {
		member rl.Member
		err    error
	}
	results := make([]result, lease.GroupSize)
	var members sync.WaitGroup
	for i := range lease.GroupSize {
		members.Go(func() { results[i].member, results[i].err = p.member(ctx, lease, i) })
	}
	members.Wait()
	for _, r := range results {
		if r.err != nil {
			return rl.Group{}, r.err
		}
		group.Members = append(group.Members, r.member)
		group.PromptTokens += r.member.PromptTokens
		group.SampledTokens += r.member.SampledTokens
	}
	p.mu.Lock()
	p.finished[lease.Key]++
	p.mu.Unlock()
	return group, nil
}

func (p *fakeWorker) member(ctx context.Context, lease exchange.Lease, index int) (rl.Member, error) {
	prompt := []int32{}
	for _, c := range []byte(fmt.Sprintf("%d+%d=", lease.Task%100, (lease.Task/3)%100)) {
		prompt = append(prompt, int32(c))
	}
	asked := rl.Request{Kind: lease.Key.Kind, Slot: lease.Key.Slot, Member: index,
		Content: rl.Content{Prompt: prompt}.Digest()}
	seed := int64(asked.Seed(rl.UsePolicy, lease.Seed))
	p.mu.Lock()
	if p.shortSeeds {
		seed &= 1<<31 - 1
	}
	p.mu.Unlock()
	tokens := 8
	for repost := 0; ; repost++ {
		session, err := p.samplingSession(ctx, p.newest(lease))
		if err != nil {
			if ctx.Err() != nil {
				return rl.Member{}, err
			}
			if client.CategoryFrom(err) == tinker.CategoryNotFound && repost > 3 {
				return rl.Member{}, err
			}
			pauseFor(ctx, 5*time.Millisecond)
			continue
		}
		id := asked.Number(rl.UsePolicy, repost)
		params := tinker.DefaultSampling()
		params.MaxTokens, params.Seed = &tokens, &seed
		result, err := p.endpoint.Sample(ctx, tinker.SampleRequest{
			NumSamples: 1, Prompt: tinker.Text(prompt), SamplingParams: params, SamplingSession: session, SeqID: &id,
		})
		if err == nil {
			return memberOf(index, prompt, result.Sequences[0]), nil
		}
		if ctx.Err() != nil {
			return rl.Member{}, err
		}
		if client.CategoryFrom(err) == tinker.CategoryNotFound {
			p.forget()
		}
		pauseFor(ctx, 2*time.Millisecond)
	}
}

// memberOf returns the member of a sample. Each sampled token adds 0, 1/4 or 1/2 to the reward, so that few groups are
// constant.
func memberOf(index int, prompt []int32, s tinker.SampledSequence) rl.Member {
	segment := rl.Segment{Tokens: append(append([]int32{}, prompt...), s.Tokens...)}
	segment.Actions = make([]bool, len(segment.Tokens))
	segment.Logprobs = make([]float32, len(segment.Tokens))
	reward := 0.0
	for i, token := range s.Tokens {
		segment.Actions[len(prompt)+i] = true
		segment.Logprobs[len(prompt)+i] = s.Logprobs[i]
		reward += float64(token%3) / 4
	}
	return rl.Member{
		Index: index, Reward: reward, StopReason: string(s.StopReason), Turns: 1,
		Trajectories: []rl.Trajectory{{Reward: reward, StopReason: string(s.StopReason), Segments: []rl.Segment{segment}}},
		Metrics:      map[string]float64{measure.MetricCorrect: float64(s.Tokens[0] % 2)},
		PromptTokens: int64(len(prompt)), SampledTokens: int64(len(s.Tokens)),
	}
}

// newest returns the lease that a new learner gave for the group in progress, whose sampler may have another name, or
// the given lease if there is none.
func (p *fakeWorker) newest(lease exchange.Lease) exchange.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok := p.kept[lease.Key]; ok {
		return kept
	}
	return lease
}

func (p *fakeWorker) samplingSession(ctx context.Context, lease exchange.Lease) (string, error) {
	p.mu.Lock()
	session := p.session
	key := fmt.Sprint(session, lease.SamplingSession, lease.Sampler)
	found := p.samplingSessions[key]
	p.mu.Unlock()
	if found != "" {
		return found, nil
	}
	made, err := p.fixture.client.CreateSamplingSession(ctx, session, lease.SamplingSession, lease.Sampler, "")
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	p.samplingSessions[key] = made
	p.mu.Unlock()
	return made, nil
}

func (p *fakeWorker) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.samplingSessions)
}
