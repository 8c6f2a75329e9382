// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// addReference fills the log-probabilities of the reference in to all segments of a member, which has ended. The tokens
// that the reference reads are not among those of the group.
func (p *Player) addReference(ctx context.Context, m rl.Member, index, try int) error {
	together, ctx := errgroup.WithContext(ctx)
	number := 0
	for _, t := range m.Trajectories {
		for i := range t.Segments {
			segment, request := &t.Segments[i], Request{Member: index, Request: number, Try: try, Prompt: t.Segments[i].Tokens}
			number++
			together.Go(func() error {
				logprobs, err := p.Reference.Logprobs(ctx, request)
				if err != nil {
					return err
				}
				segment.ReferenceLogprobs = make([]float32, len(segment.Tokens))
				for j, sampled := range segment.Actions {
					if sampled {
						segment.ReferenceLogprobs[j] = logprobs[j]
					}
				}
				return nil
			})
		}
	}
	return together.Wait()
}
