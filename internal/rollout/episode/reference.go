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
func (p *Player) addReference(ctx context.Context, key rl.Key, m rl.Member, index, try int) error {
	together, ctx := errgroup.WithContext(ctx)
	for _, t := range m.Trajectories {
		c := conversation{key: t.Key}
		for i := range t.Segments {
			segment, request := &t.Segments[i], Request{Prompt: t.Segments[i].Tokens}
			c.identify(&request, key, index, try)
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
