// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package latency gives the operations of a simulated server the times that a hosted server takes, so that the
// waits of a client can be measured on one machine. It changes no result.
package latency

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// The names of the operations that have times, as the API spells them.
const (
	opSample          = "asample"
	opForwardBackward = "forward_backward"
	opOptimStep       = "optim_step"
	opSaveSampler     = "save_weights_for_sampler"
	opSaveState       = "save_weights"
)

var operations = []string{opSample, opForwardBackward, opOptimStep, opSaveSampler, opSaveState}

// Profile says how long operations take. Operations that it does not name, and all operations with the zero Profile,
// take no longer than their computation.
type Profile struct {
	// Sample is the median time of a sample, from its request to its result. The time is
	// Sample * exp(SampleSigma * z), where z has the standard normal distribution and is drawn from the seed of the
	// sample.
	Sample      time.Duration
	SampleSigma float64
	// Sequence is the time of forward_backward for one sequence, and OptimStep the time of optim_step. The model does
	// nothing else during these.
	Sequence, OptimStep time.Duration
	// Cycle delays the first forward_backward before an optim_step to the next multiple of Cycle.
	Cycle time.Duration
	// SaveSampler and SaveState are the times of a save, from its turn in the model's order to its result. The save has
	// the state of the model at its turn.
	SaveSampler, SaveState time.Duration
	// SavesBlock makes later operations of the model wait until a save has its result.
	SavesBlock bool
	// RefuseEvery is N if one of N requests is refused with 429 and RetryAfter; 0 refuses none.
	RefuseEvery int64
	RetryAfter  time.Duration
}

// Hosted has the measurements of users of the hosted service: a median sample takes 12 s, a step of 256 sequences 10 s,
// begun at multiples of 8 s, a save of a sampler's weights 3 s and of a state 14 s; 2% of the requests are refused.
var Hosted = Profile{
	Sample: 12 * time.Second, SampleSigma: 0.5,
	Sequence: 37500 * time.Microsecond, OptimStep: 400 * time.Millisecond, Cycle: 8 * time.Second,
	SaveSampler: 3 * time.Second, SaveState: 14 * time.Second,
	RefuseEvery: 50, RetryAfter: time.Second,
}

// Faster returns the profile with all times divided by factor.
func (p Profile) Faster(factor float64) Profile {
	for _, d := range []*time.Duration{&p.Sample, &p.Sequence, &p.OptimStep, &p.Cycle, &p.SaveSampler, &p.SaveState,
		&p.RetryAfter} {
		*d = time.Duration(float64(*d) / factor)
	}
	return p
}

// SampleTime returns the time of the sample with that seed.
func (p Profile) SampleTime(seed uint64) time.Duration {
	z := rand.New(rand.NewPCG(seed, 0)).NormFloat64()
	return time.Duration(float64(p.Sample) * math.Exp(p.SampleSigma*z))
}

// Work is one operation.
type Work struct {
	// Op is its name, and Model the id of its model.
	Op, Model string
	// Name is the name or path of the checkpoint that it saves or samples from.
	Name string
	// Sequences is the number of sequences of a forward_backward.
	Sequences int
}

// Event is an operation with its times by the profile.
type Event struct {
	Work
	// Arrived is the time at which the operation had its turn, and Begun the time at which it began, after the wait for
	// the cycle.
	Arrived, Begun time.Time
	// Ended is the time at which it has its result.
	Ended time.Time
}

// Simulator adds times to operations. It is safe for concurrent use. A nil Simulator adds none.
type Simulator struct {
	profile Profile
	observe func(Event)

	mu       sync.Mutex
	training map[string]bool // the models that have begun a forward_backward since their last optim_step
	requests int64
}

// NewSimulator returns a Simulator that calls observe, which may be nil, with each operation. It returns nil for the
// zero Profile.
func NewSimulator(profile Profile, observe func(Event)) *Simulator {
	if profile == (Profile{}) {
		return nil
	}
	if observe == nil {
		observe = func(Event) {}
	}
	return &Simulator{profile: profile, observe: observe, training: map[string]bool{}}
}

// Refuses counts a request for an operation that has a time, and reports whether it is refused with 429 and when the
// client may repeat it.
func (s *Simulator) Refuses(op string) (retryAfter time.Duration, refused bool) {
	if s == nil || s.profile.RefuseEvery == 0 || !slices.Contains(operations, op) {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return s.profile.RetryAfter, s.requests%s.profile.RefuseEvery == 0
}

// Sample returns when a request for samples that arrives now has its result: when its slowest sample is complete.
func (s *Simulator) Sample(model, path string, seeds []uint64) time.Time {
	if s == nil {
		return time.Time{}
	}
	now := time.Now()
	var longest time.Duration
	for _, seed := range seeds {
		longest = max(longest, s.profile.SampleTime(seed))
	}
	end := now.Add(longest)
	s.observe(Event{Work: Work{Op: opSample, Model: model, Name: path}, Arrived: now, Begun: now, Ended: end})
	return end
}

// Operate carries out an operation of a model by do, and returns the time at which its result is sent. It waits before
// do until the operation may begin, and after it while the operation occupies the model. It returns the error of do or
// of ctx.
func (s *Simulator) Operate(ctx context.Context, work Work, do func() error) (time.Time, error) {
	if s == nil {
		return time.Time{}, do()
	}
	event := Event{Work: work, Arrived: time.Now()}
	event.Begun = s.beginning(work, event.Arrived)
	if err := wait.Sleep(ctx, time.Until(event.Begun)); err != nil {
		return time.Time{}, err
	}
	if err := do(); err != nil {
		return time.Time{}, err
	}
	took, occupies := s.profile.duration(work)
	event.Ended = event.Begun.Add(took)
	s.observe(event)
	if !occupies {
		return event.Ended, nil
	}
	return time.Time{}, wait.Sleep(ctx, time.Until(event.Ended))
}

// beginning returns when an operation whose turn has come may begin.
func (s *Simulator) beginning(work Work, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch work.Op {
	case opForwardBackward:
		if s.training[work.Model] {
			return now
		}
		s.training[work.Model] = true
		return s.profile.NextCycle(now)
	case opOptimStep:
		delete(s.training, work.Model)
	}
	return now
}

// NextCycle returns the first multiple of Cycle that is not before the given time.
func (p Profile) NextCycle(now time.Time) time.Time {
	if p.Cycle == 0 {
		return now
	}
	begun := now.Truncate(p.Cycle)
	if begun.Before(now) {
		begun = begun.Add(p.Cycle)
	}
	return begun
}

// duration returns how long an operation of a model takes, and whether the model does nothing else during it.
func (p Profile) duration(work Work) (took time.Duration, occupies bool) {
	switch work.Op {
	case opForwardBackward:
		return time.Duration(work.Sequences) * p.Sequence, true
	case opOptimStep:
		return p.OptimStep, true
	case opSaveSampler:
		return p.SaveSampler, p.SavesBlock
	case opSaveState:
		return p.SaveState, p.SavesBlock
	}
	return 0, true
}
