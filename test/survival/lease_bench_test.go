// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// BenchmarkFirstLease measures the time from the start of a run's first learner to its first lease, at an endpoint that
// takes the times of the hosted service, divided by ten: of a run that checks the endpoint itself, and of one that
// relies on the findings of another run.
func BenchmarkFirstLease(b *testing.B) {
	var found *contract.Capabilities
	measure := func(b *testing.B, goal float64, share bool) {
		for b.Loop() {
			w := withoutCapabilities(newFixtureOn(b, tinkersim.Options{SessionTimeout: time.Minute, Latency: hostedTimes},
				func(f *contract.RunFile) { f.Evaluation = nil }))
			if share && found == nil {
				b.Skip("the benchmark of the first run has not run")
			}
			if share {
				w.shareCapabilities(found)
			}
			leased := make(chan time.Time, 1)
			w.startWorker("w0", behavior{leased: func(exchange.Lease) {
				select {
				case leased <- time.Now():
				default:
				}
			}})
			began := time.Now()
			a := w.startLearner(1, nil)
			select {
			case at := <-leased:
				b.ReportMetric(at.Sub(began).Seconds(), "s/first-lease")
			case <-a.done:
				b.Fatalf("the learner ended with %s: %s", a.verdict.Cause, a.verdict.Message)
			}
			a.cancel()
			<-a.done
			found = a.verdict.Progress.Capabilities
		}
		b.ReportMetric(goal, "goal")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("first-run", func(b *testing.B) { measure(b, 10, false) })
	b.Run("checked-by-another", func(b *testing.B) { measure(b, 5, true) })
}
