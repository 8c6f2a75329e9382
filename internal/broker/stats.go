// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Answer describes a broker's answer to a request, for metrics.
type Answer struct {
	// Op is the operation of the request; empty for a route that the broker does not pass.
	Op string
	// Status is the status of the server's answer, or of the broker's own, and Code the code of the broker's own.
	Status int
	Code   problem.Code
	// Took is how long the request took.
	Took time.Duration
}

// Stats are the sizes of a broker's records and bodies.
type Stats struct {
	// Runs is the number of runs whose token the broker accepts, without the broker's own run.
	Runs int
	// Sessions, Models, Samplers and Futures are the numbers of objects whose owner the broker knows.
	Sessions, Models, Samplers, Futures int
	// BodyBytes is the memory that is reserved for the bodies of requests.
	BodyBytes int64
}

// Usage returns the broker's count of a day, by run and model; nil if it counts nothing.
func (b *Broker) Usage(day time.Time) []endpoint.Usage {
	if b.config.Meter == nil {
		return nil
	}
	return b.config.Meter.Usage(day)
}

// Stats returns the sizes of the broker's records and bodies.
func (b *Broker) Stats() Stats {
	b.owners.mu.RLock()
	defer b.owners.mu.RUnlock()
	return Stats{
		Runs: len(*b.runs.Load()) - 1, Sessions: len(b.owners.byID[session]), Models: len(b.owners.byID[model]),
		Samplers: len(b.owners.byID[sampler]), Futures: len(b.owners.byID[future]), BodyBytes: b.bodyBytes.Load(),
	}
}
