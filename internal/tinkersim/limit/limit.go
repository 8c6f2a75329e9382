// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package limit refuses requests of a key with 429, as a server that limits requests a second and unfinished samples
// does.
package limit

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// OpSample is the operation whose requests may be unfinished.
const OpSample = "asample"

// submits are the operations that count, as the API spells them. Polls do not count.
var submits = []string{
	OpSample, "forward_backward", "forward", "optim_step", "save_weights", "save_weights_for_sampler", "load_weights",
	"create_model", "unload_model",
}

// Limits are the limits of a server; 0 is no limit.
type Limits struct {
	// RequestsPerSecond limits submits. The submits of a second may come at once.
	RequestsPerSecond float64
	// UnfinishedSamples limits the requests for samples that have no result yet.
	UnfinishedSamples int
	// RetryAfter is the time after which the server says that a refused request may be repeated.
	RetryAfter time.Duration
}

// Limiter counts. It is safe for concurrent use.
type Limiter struct {
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	credit float64
	filled time.Time
	// unfinished are the futures of samples whose result was not seen yet, and asked counts the requests that have no
	// future yet.
	unfinished map[string]<-chan struct{}
	asked      int
	refused    int64
}

// New returns a limiter whose first second is not used yet.
func New(limits Limits, now func() time.Time) *Limiter {
	return &Limiter{limits: limits, now: now, credit: limits.RequestsPerSecond, filled: now(),
		unfinished: map[string]<-chan struct{}{}}
}

// Admit counts a request, and reports whether it is permitted. The caller calls end with the future of a permitted
// request, or with "" if it has none; finished is closed once the future has a result.
func (l *Limiter) Admit(op string) (end func(id string, finished <-chan struct{}), ok bool) {
	if !slices.Contains(submits, op) || l.limits == (Limits{RetryAfter: l.limits.RetryAfter}) {
		return func(string, <-chan struct{}) {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sample := op == OpSample && l.limits.UnfinishedSamples > 0
	if sample {
		maps.DeleteFunc(l.unfinished, func(_ string, finished <-chan struct{}) bool { return isClosed(finished) })
	}
	if sample && len(l.unfinished)+l.asked >= l.limits.UnfinishedSamples || !l.take() {
		l.refused++
		return nil, false
	}
	if !sample {
		return func(string, <-chan struct{}) {}, true
	}
	l.asked++
	return l.began, true
}

// take takes one of the requests of the current second. The lock is held.
func (l *Limiter) take() bool {
	rate := l.limits.RequestsPerSecond
	if rate <= 0 {
		return true
	}
	now := l.now()
	l.credit = min(max(1, rate), l.credit+now.Sub(l.filled).Seconds()*rate)
	l.filled = now
	if l.credit < 1 {
		return false
	}
	l.credit--
	return true
}

// began notes that a sample has its future. The sample counts until finished is closed; without a future it no longer
// counts.
func (l *Limiter) began(id string, finished <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked--
	if id != "" && finished != nil {
		l.unfinished[id] = finished
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Forget forgets all samples, as a restarted server does.
func (l *Limiter) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.unfinished)
}

// RetryAfter returns the time after which a refused request may be repeated.
func (l *Limiter) RetryAfter() time.Duration { return l.limits.RetryAfter }

// Refused returns how many requests were refused.
func (l *Limiter) Refused() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
