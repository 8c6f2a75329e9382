// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// TestLostWorkerSamplesOlderVersion loses a worker, which still samples the initial version after the batch of the
// next version is sampled, or after the next version is trained further. The server, which loads sampler weights into
// the model that saved them, refuses these samples.
func TestLostWorkerSamplesOlderVersion(t *testing.T) {
	t.Parallel()
	found, want := skyRLBaseline(t)
	for _, point := range []string{"step.sampled", "replies.clean"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newSkyRL(t, nil).knowing(found)
			w.silence = 2 * time.Second
			network := &silentNetwork{fixture: w, silent: make(chan struct{})}
			leased := make(chan exchange.Lease, 64)
			w.startWorker("w0", behavior{
				room: 8, dial: network.dial, delay: func(int64) time.Duration { return time.Hour },
				leased: func(lease exchange.Lease) {
					if lease.Key.Kind == rl.Train {
						leased <- lease
					}
				},
			})
			stale := make(chan exchange.Lease, 1)
			a := w.startLearner(1, w.at(point, 2, then(func() {
				if err := w.sample(<-stale); client.CategoryFrom(err) != tinker.CategoryNotFound {
					t.Errorf("sampling the version of a lost worker: %v, want a refusal, since no model that trains has it", err)
				}
			})))
			stale <- <-leased
			close(network.silent)
			w.startWorker("w1", behavior{})
			w.checkWeights(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}

// sample samples the weights of a lease, as its worker would.
func (w *fixture) sample(lease exchange.Lease) error {
	session, err := w.client.CreateSession(w.t.Context(), client.SessionRequest{})
	if err != nil {
		return err
	}
	sampler, err := w.client.CreateSamplingSession(w.t.Context(), session, 1, lease.Sampler, "")
	if err != nil {
		return err
	}
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	_, err = w.client.Sample(w.t.Context(), tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text([]int32{49, 43, 49, 61}), SamplingParams: params, SamplingSession: sampler,
		SeqID: new(int64(1)),
	})
	return err
}
