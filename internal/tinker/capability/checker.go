// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Probe is what is to be found out, and where.
type Probe struct {
	API *client.Client
	// BaseURL is copied into the report.
	BaseURL string
	// Model is the name of the base model.
	Model string
	// Lora is the adapter that the run trains. The probe's own models have rank 1, or this rank where the
	// server refuses that, and train the same matrices.
	Lora tinker.LoraConfig
	// UserMetadata is noted at the probe's models, so that those that a probe leaves behind are found.
	UserMetadata tinker.Metadata
	// Features that are asked about; the report may have others, which came by the way.
	Features []Feature
	// Patience is how long is waited for what no training depends on: listings, times to live, sampling. 0
	// is one minute.
	Patience time.Duration
}

// Run tries what is asked about, and cleans up after itself. An error says that nothing is known for a
// reason that lies elsewhere: the context ended, the key or the base model was refused, or the server
// failed three times at what works on every server. A feature at which it failed thrice is Unknown.
func (p Probe) Run(ctx context.Context) (Report, error) {
	if p.Patience == 0 {
		p.Patience = time.Minute
	}
	ctx, stop := context.WithCancelCause(ctx)
	l := &lab{Probe: p, stop: stop, rank: 1, ttl: hour, report: Report{BaseURL: p.BaseURL, Model: p.Model, Findings: map[Feature]Finding{}}}
	defer l.alive.Wait()
	defer stop(nil)
	defer l.clean(ctx)
	if err := l.persist(ctx, l.prepare); err != nil {
		return Report{}, err
	}
	var parts sync.WaitGroup
	for _, part := range []func(context.Context){l.vital, l.sampling, l.bookkeeping} {
		parts.Go(func() { part(ctx) })
	}
	parts.Wait()
	if err := context.Cause(ctx); err != nil {
		return Report{}, fmt.Errorf("probing the endpoint: %w", err)
	}
	l.unload(ctx)
	return l.report, nil
}

// lab is a probe under way.
type lab struct {
	Probe
	// stop ends everything at an error that more trying does not mend.
	stop context.CancelCauseFunc

	session string
	rank    int
	// ttl of what is saved, in seconds; 0 where the server refuses one.
	ttl int64
	// loss that the probe trains by.
	loss string
	// first is the model that everything begins with. base are its log-probabilities as it was made, saved
	// when its state was saved, third after the step that it took then. blind is a server that tells none.
	first       *client.Model
	base, saved []float64
	third       outcome
	blind       bool
	// state and sampler are paths.
	state, sampler string

	// alive keeps sessions alive.
	alive sync.WaitGroup

	mu     sync.Mutex
	made   int
	models []string
	report Report
}

func (l *lab) wants(f Feature) bool { return slices.Contains(l.Features, f) }

func (l *lab) find(f Feature, support Support, note string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Findings[f] = Finding{Support: support, Note: note}
}

func (l *lab) known(f Feature) Support {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report.Of(f)
}

// tries is how often something is tried at which the server fails.
const tries = 3

// persist tries again what failed for a reason that may pass.
func (l *lab) persist(ctx context.Context, act func(context.Context) error) error {
	var err error
	for range tries {
		if err = act(ctx); err == nil || hopeless(ctx, err) {
			return err
		}
	}
	return err
}

// hopeless says that trying again does not help.
func hopeless(ctx context.Context, err error) bool {
	return ctx.Err() != nil || refused(err) || client.CategoryFrom(err) == tinker.CategoryUnauthorized
}

// refused says that the server does not take what it was sent.
func refused(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUser, tinker.CategoryUnsupported:
		return true
	}
	return false
}

// absent says that the server has no such thing, or gives answers that are not the API's.
func absent(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryProtocol:
		return true
	}
	return refused(err) || errors.Is(err, client.ErrUnsupported)
}

// conclude files what an error says about a feature. A key that is refused ends the probe.
func (l *lab) conclude(f Feature, err error) {
	switch {
	case client.CategoryFrom(err) == tinker.CategoryUnauthorized:
		l.stop(err)
	case absent(err):
		l.find(f, Unsupported, err.Error())
	default:
		l.find(f, Unknown, err.Error())
	}
}

// concludeTrial files what a trial's error says: that the server forgot a model says nothing.
func (l *lab) concludeTrial(f Feature, err error) {
	if refused(err) {
		l.find(f, Unsupported, err.Error())
		return
	}
	l.find(f, Unknown, err.Error())
}

func await[T any](ctx context.Context, future *client.Future[T], err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return future.Wait(ctx)
}
