// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// The sampler supports everything, but its arithmetic sometimes decides one near tie in 64 tokens differently.
func TestReviewNearTie(t *testing.T) {
	t.Skip("finding not repaired yet: tinker M1")
	var n atomic.Int32
	_, checker := server(t, editSamples(func(r *tinker.SampleResult) {
		if len(r.Sequences) == 8 && n.Add(1)%2 == 0 {
			last := r.Sequences[7].Tokens
			last[len(last)-1] ^= 1
		}
	}))
	checker.Features = sampling
	report := run(t, checker)
	for _, f := range sampling {
		t.Logf("%s: %+v", f, report.Findings[f])
	}
	t.Errorf("lacks temperature: %v", report.Lacks(capability.Temperature))
}
