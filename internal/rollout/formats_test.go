// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
)

// TestWhoWaitsForTheFormat checks that episodes always wait for a format that can declare their tools. For a format
// that can express their messages they wait until it has expressed a prompt of their environment, or training has
// begun.
func TestWhoWaitsForTheFormat(t *testing.T) {
	base := "tinker://run/sampler_weights/"
	lease := func(kind rl.Kind, sampler string) exchange.Lease {
		return exchange.Lease{Key: rl.Key{Kind: kind}, Sampler: sampler}
	}
	sampler := func(step int64) string {
		return base + rl.CheckpointName{
			Run: "1f3a9c2b", Step: step, Attempt: 1, Model: 1, Lineage: rl.Genesis("x"),
		}.String()
	}
	first, later := sampler(0), sampler(3)
	for name, tc := range map[string]struct {
		lease              exchange.Lease
		err                error
		expressed, another bool
		want               bool
	}{
		"tools": {lease: lease(rl.Train, first), err: renderer.ErrTools, want: true},
		"tools, after others were expressed": {lease: lease(rl.Train, later), err: renderer.ErrTools, expressed: true,
			want: true},
		"a message": {lease: lease(rl.Train, first), err: renderer.ErrUnsupported, want: true},
		"a message, after another's": {lease: lease(rl.Train, first), err: renderer.ErrUnsupported, another: true,
			want: true},
		"a message, after one's own":    {lease: lease(rl.Train, first), err: renderer.ErrUnsupported, expressed: true},
		"a message, after a step":       {lease: lease(rl.Train, later), err: renderer.ErrUnsupported},
		"an evaluation of a checkpoint": {lease: lease(rl.Evaluate, later), err: renderer.ErrUnsupported, want: true},
		"an evaluation of a base model": {lease: lease(rl.Evaluate, "Qwen/Qwen3-8B"), err: errors.New("x"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			known := &formats{}
			g := &groupFormat{formats: known, environment: "e", trained: isTrained(tc.lease)}
			if tc.expressed {
				g.Expressed()
			}
			if tc.another {
				(&groupFormat{formats: known, environment: "f"}).Expressed()
			}
			if got := g.Awaits(&episode.FormatError{Err: tc.err}); got != tc.want {
				t.Errorf("Awaits = %v, want %v", got, tc.want)
			}
		})
	}
}
