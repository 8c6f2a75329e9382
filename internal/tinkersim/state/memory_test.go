// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"runtime"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// heap returns the bytes in use after everything that is unreachable was collected.
func heap() uint64 {
	for range 3 { // pools give their content up in the second collection
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestWeeksLeaveNoMemory runs a client every two hours for weeks, and each disappears without a word. It checks that
// only the descriptions of their runs remain.
func TestWeeksLeaveNoMemory(t *testing.T) {
	const clients, perClient = 100, 4 << 10
	f := newFixture(t)
	work := func() {
		session := f.session()
		model := f.model(session, 0)
		f.await(f.Models.OptimStep(tinker.OptimStepRequest{ModelID: model, SeqID: 1,
			AdamParams: tinker.AdamParams{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.9, Eps: 1e-8}}))
		f.save(model, "state", 2, new(int64(3600)))
		f.await(f.Models.SaveSampler(tinker.SaveSamplerRequest{ModelID: model, SamplingSessionSeq: new(int64(0)), SeqID: 3}))
		for seq := range int64(10) {
			sample := tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text([]int32{65, 66}),
				SamplingParams: tinker.DefaultSampling(), SamplingSession: session + ":sample:0", SeqID: &seq}
			sample.SamplingParams.MaxTokens = new(1)
			f.await(f.Samplers.Sample(sample))
		}
		f.clock.advance(2 * time.Hour)
	}
	for range 40 { // the cache of weights is full after 32
		work()
	}
	before := heap()
	for range clients {
		work()
	}
	after := heap()
	t.Logf("%d bytes before, %d after %d clients", before, after, clients)
	if after > before+clients*perClient {
		t.Errorf("each of %d clients leaves %d KiB", clients, (after-before)/clients/1024)
	}
	if n := len(f.Samplers.requests.byKey); n > 20 {
		t.Errorf("%d requests for samples are remembered", n)
	}
	runtime.KeepAlive(f.State)
}
