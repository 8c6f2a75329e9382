// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// ErrFenced says that a higher attempt has been started.
var ErrFenced = errors.New("a higher attempt has been started")

// ErrUnanswered says that the store has not answered a call, and that the learner no longer waits for the answer.
var ErrUnanswered = errors.New("the artifact store does not answer")

// errSlow reports a call that takes long and has not failed.
var errSlow = errors.New("the store takes long to answer")

// Config configures a Journal.
type Config struct {
	// Dir is the folder of the artifacts; empty if the run has none.
	Dir string
	// URL is the address of the artifacts, with a copy in Dir; empty if the artifacts are only in Dir.
	URL string
	// OpenBucket opens a URL that is not a file URL.
	OpenBucket OpenBucket
	RunUID     string
	Attempt    int32
	// Identity distinguishes this process from any other that claims the same attempt.
	Identity string
	// Spec is the run file as the attempt reads it.
	Spec   []byte
	Logger *slog.Logger
	// Blocked is called with the error of the store, and with nil when the store answers again.
	Blocked func(err error)
	// Parent returns the parents of versions whose rows cannot be read.
	Parent Parent
	// Committed receives the rows of steps once they are committed. It may be nil.
	Committed func(Row)
	// Pause is the time between two calls of a store that does not answer.
	Pause time.Duration
	// Slow is the time after which a call is reported.
	Slow time.Duration
	// GiveUp is closed when calls shall no longer wait for the store, since the learner drains. A call that fails is
	// then not repeated. If GiveUp is nil, calls wait forever.
	GiveUp <-chan struct{}
}

// OpenBucket opens artifacts.url. Only programs that keep artifacts at URLs provide it, so that only these programs
// link the drivers.
type OpenBucket func(ctx context.Context, url string) (Objects, error)

// Journal is used by the goroutine of the loop, except for the methods that evaluations and sessions need.
type Journal struct {
	config Config
	store  *Store // nil without artifacts
	// rows are not durable yet, lines are not in metrics.jsonl yet.
	rows     []stepRow
	lines    []line
	spending spendingWrites
}

// stepRow is the row of a step with its episodes.
type stepRow struct {
	Row
	episodes []byte
}

// line is a row that is durable, but not in metrics.jsonl yet. completed is set once Complete has changed the row.
type line struct {
	Row
	completed bool
}

// NewJournal returns a journal that has claimed nothing.
func NewJournal(config Config) *Journal {
	return &Journal{config: config}
}

// HasStore reports whether there is an artifact store.
func (j *Journal) HasStore() bool { return j.store != nil }

// Claim marks the attempt as begun before anything is listed.
func (j *Journal) Claim(ctx context.Context) error {
	if j.config.Dir == "" {
		return nil
	}
	opened := j.store
	err := j.insist(ctx, "claiming", func() (err error) {
		if opened == nil {
			if opened, err = j.config.open(ctx); err != nil {
				return err
			}
		}
		if err := opened.Claim(j.config.Attempt, j.config.Identity); err != nil {
			return err
		}
		if err := opened.WriteSpec(j.config.Attempt, j.config.Spec); err != nil {
			return err
		}
		return lookForClaim(opened, j.config.Attempt)
	})
	if err == nil {
		j.store = opened
	}
	return err
}

// open returns the store that the settings name.
func (c Config) open(ctx context.Context) (*Store, error) {
	if c.URL == "" {
		return OpenStore(c.Dir, c.RunUID)
	}
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing artifacts.url: %w", err)
	}
	if address.Scheme == "file" {
		return OpenStore(address.Path, c.RunUID)
	}
	objects, err := c.OpenBucket(ctx, c.URL)
	if err != nil {
		return nil, err
	}
	return OpenBucketStore(objects, c.Dir, c.RunUID)
}

// LookForClaim waits until the store says which attempts have claimed the run, and fails with ErrFenced if a higher one
// has.
func (j *Journal) LookForClaim(ctx context.Context) error {
	if j.store == nil {
		return nil
	}
	return j.insist(ctx, "looking for a higher claim", func() error { return lookForClaim(j.store, j.config.Attempt) })
}

// AwaitClaims is like LookForClaim, and also refreshes the store's copy, which then has all that was written before
// the call.
func (j *Journal) AwaitClaims(ctx context.Context) error {
	if j.store == nil {
		return nil
	}
	return j.insist(ctx, "looking for a higher claim", func() error {
		if err := lookForClaim(j.store, j.config.Attempt); err != nil {
			return err
		}
		return j.store.Refresh()
	})
}

func lookForClaim(s *Store, attempt int32) error {
	highest, err := s.HighestClaim()
	if err != nil {
		return err
	}
	if highest > attempt {
		return fmt.Errorf("attempt %d: %w: %d", attempt, ErrFenced, highest)
	}
	return nil
}

// insist repeats a call of the store until the store answers, and reports why it does not. ErrFenced, ErrClaimed and
// *AdoptedError count as answers. insist returns early when ctx ends, or with ErrUnanswered once the learner gives
// up. act may then still be running, so it must not use values that its caller changes.
func (j *Journal) insist(ctx context.Context, what string, act func() error) error {
	for {
		err := j.call(ctx, what, act)
		_, adopted := errors.AsType[*AdoptedError](err)
		if adopted || err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrClaimed) {
			j.config.Blocked(nil)
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		j.blocked(what, err)
		pause := time.NewTimer(j.config.Pause)
		select {
		case <-pause.C:
		case <-j.config.GiveUp:
		case <-ctx.Done():
		}
		pause.Stop()
		if wait.IsClosed(j.config.GiveUp) {
			return fmt.Errorf("%s: %w: %w", what, ErrUnanswered, err)
		}
	}
}

// call calls the store, and reports a call that takes long. It fails with errSlow if such a call has no result when the
// learner gives up.
func (j *Journal) call(ctx context.Context, what string, act func() error) error {
	result := make(chan error, 1)
	go func() { result <- act() }()
	slow := time.NewTimer(j.config.Slow)
	defer slow.Stop()
	// A call that has begun may have changed the store, so it is awaited unless it takes long. These channels are nil
	// until it takes long.
	var giveUp, ended <-chan struct{}
	for {
		select {
		case err := <-result:
			if ended != nil && err == nil {
				j.config.Blocked(nil)
			}
			return err
		case <-slow.C:
			giveUp, ended = j.config.GiveUp, ctx.Done()
			j.blocked(what, errSlow)
		case <-giveUp:
			return errSlow
		case <-ended:
			return context.Cause(ctx)
		}
	}
}

func (j *Journal) blocked(act string, err error) {
	j.config.Logger.Warn("artifact store does not answer", "act", act, "err", err)
	j.config.Blocked(err)
}
