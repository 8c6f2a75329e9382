// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal writes a run's rows, evaluations and metrics down in its artifact store, and waits for a store
// that does not answer. Without a store it writes nothing and knows of nothing.
package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// ErrFenced says that a higher attempt has been started.
var ErrFenced = errors.New("a higher attempt has been started")

// ErrPostponed says that the store does not answer, so that what it was to be given waits for a later call.
var ErrPostponed = errors.New("the artifact store does not answer")

// Config configures a Journal.
type Config struct {
	// Dir is the folder of the artifacts; empty for none.
	Dir string
	// URL is where the artifacts are kept instead, and Dir is for a copy of them; empty for none.
	URL string
	// OpenBucket opens a URL other than that of a file.
	OpenBucket OpenBucket
	RunUID     string
	Attempt    int32
	// Identity distinguishes this process from any other that claims the same attempt.
	Identity string
	// Spec is the run file as the attempt reads it.
	Spec   []byte
	Logger *slog.Logger
	// Blocked is given the store's problem, and an empty one when the store answers again.
	Blocked func(problem string)
	// Parent knows the parents of versions without their rows.
	Parent store.Parent
	// Committed receives the rows of steps once they are committed; nil for nobody.
	Committed func(store.Row)
	// Pause is the time between two calls of a store that does not answer.
	Pause time.Duration
}

// OpenBucket opens artifacts.url. It is given by programs that keep artifacts at URLs, so that the drivers are linked there alone.
type OpenBucket func(ctx context.Context, url string) (store.Objects, error)

// Journal is used by the goroutine of the loop, except for what evaluations and sessions need.
type Journal struct {
	config Config
	store  *store.Store // nil without artifacts
	// rows are not durable yet, lines are not in metrics.jsonl yet.
	rows  []stepRow
	lines []line
	// Transcripts are those of the steps.
	Transcripts Transcripts
}

// stepRow is the row of a step with the results of its rollouts.
type stepRow struct {
	store.Row
	rollouts []byte
}

// line is a row that is durable, but not in metrics.jsonl yet. It is completed once it was changed since.
type line struct {
	store.Row
	completed bool
}

// New returns a journal that has claimed nothing.
func New(config Config) *Journal {
	j := &Journal{config: config}
	j.Transcripts.journal = j
	return j
}

// HasStore reports whether there is an artifact store.
func (j *Journal) HasStore() bool { return j.store != nil }

// Claim marks the attempt as begun before anything is listed. While the store does not answer there is nothing to
// do but to try again.
func (j *Journal) Claim(ctx context.Context) error {
	if j.config.Dir == "" {
		return nil
	}
	return j.insist(ctx, "claiming", func() error {
		var err error
		if j.store == nil {
			if j.store, err = j.config.open(ctx); err != nil {
				return err
			}
		}
		if err := j.store.Claim(j.config.Attempt, j.config.Identity); err != nil {
			return err
		}
		if err := j.store.WriteSpec(j.config.Attempt, j.config.Spec); err != nil {
			return err
		}
		return j.lookForClaim()
	})
}

// open returns the store that the settings name.
func (c Config) open(ctx context.Context) (*store.Store, error) {
	if c.URL == "" {
		return store.Open(c.Dir, c.RunUID)
	}
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing artifacts.url: %w", err)
	}
	if address.Scheme == "file" {
		return store.Open(address.Path, c.RunUID)
	}
	objects, err := c.OpenBucket(ctx, c.URL)
	if err != nil {
		return nil, err
	}
	return store.OpenObjects(objects, c.Dir, c.RunUID)
}

// LookForClaim fails with ErrFenced when a higher attempt has claimed the run, and with ErrPostponed when the store
// does not answer.
func (j *Journal) LookForClaim(ctx context.Context) error {
	err := j.lookForClaim()
	if err == nil || errors.Is(err, ErrFenced) || ctx.Err() != nil {
		return err
	}
	j.blocked("looking for a higher claim", err)
	return fmt.Errorf("%w: %w", ErrPostponed, err)
}

// AwaitClaims is LookForClaim, and waits for the store. After it, all is known that was written before.
func (j *Journal) AwaitClaims(ctx context.Context) error {
	return j.insist(ctx, "looking for a higher claim", func() error {
		if err := j.lookForClaim(); err != nil || j.store == nil {
			return err
		}
		return j.store.Refresh()
	})
}

func (j *Journal) lookForClaim() error {
	if j.store == nil {
		return nil
	}
	highest, err := j.store.HighestClaim()
	if err != nil {
		return err
	}
	if highest > j.config.Attempt {
		return fmt.Errorf("attempt %d: %w: %d", j.config.Attempt, ErrFenced, highest)
	}
	return nil
}

// insist repeats a call of the store until the store answers. ErrFenced counts as an answer.
func (j *Journal) insist(ctx context.Context, what string, act func() error) error {
	for {
		err := act()
		if _, adopted := errors.AsType[*store.AdoptedError](err); adopted || err == nil || errors.Is(err, ErrFenced) || errors.Is(err, store.ErrClaimed) {
			j.config.Blocked("")
			return err
		}
		j.blocked(what, err)
		if err := wait.Sleep(ctx, j.config.Pause); err != nil {
			return err
		}
	}
}

func (j *Journal) blocked(act string, err error) {
	j.config.Logger.Warn("artifact store does not answer", "act", act, "err", err)
	j.config.Blocked(err.Error())
}
