// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestMeterCountsCachedPrompts checks that cached tokens of the prompt count apart, at most as many as the prompt has.
// References and teachers have no cached tokens: their tokens are counted in other fields.
func TestMeterCountsCachedPrompts(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		ctx    context.Context
		cached int
		want   spending.Usage
	}{
		"some":             {ctx, 2, spending.Usage{PromptTokens: 3, CachedPromptTokens: 2, SampledTokens: 2}},
		"none":             {ctx, 0, spending.Usage{PromptTokens: 3, SampledTokens: 2}},
		"more than it has": {ctx, 9, spending.Usage{PromptTokens: 3, CachedPromptTokens: 3, SampledTokens: 2}},
		"less than none":   {ctx, -1, spending.Usage{PromptTokens: 3, SampledTokens: 2}},
		"of a reference":   {WithUse(ctx, UseReference), 2, spending.Usage{ReferenceTokens: 5}},
		"of a teacher":     {WithUse(ctx, UseTeacher), 2, spending.Usage{TeacherTokens: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(MeterConfig{Lifetime: ctx})
			c := m.chargeOfSample(tc.ctx, tinker.SampleRequest{Prompt: tinker.Text([]int32{1, 2, 3}), NumSamples: 1})
			m.begin(c)
			sampled, cached := tokensIn(tinker.SampleResult{PromptCacheHitTokens: tc.cached,
				Sequences: []tinker.SampledSequence{{Tokens: []int32{4, 5}}}})
			m.answer(c, sampled, cached)
			if diff := cmp.Diff(tc.want, m.Used()); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}
