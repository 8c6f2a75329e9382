// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// A sampler that honours everything, and whose arithmetic decides one near tie in 64 tokens otherwise now and then.
func TestReviewNearTie(t *testing.T) {
	t.Skip("finding not repaired yet: tinker M1")
	var n atomic.Int32
	_, probe := server(t, samples(func(r *tinker.SampleResult) {
		if len(r.Sequences) == 8 && n.Add(1)%2 == 0 {
			last := r.Sequences[7].Tokens
			last[len(last)-1] ^= 1
		}
	}))
	probe.Features = sampling
	report := run(t, probe)
	for _, f := range sampling {
		t.Logf("%s: %+v", f, report.Findings[f])
	}
	t.Errorf("lacks temperature: %v", report.Lacks(capability.Temperature))
}
