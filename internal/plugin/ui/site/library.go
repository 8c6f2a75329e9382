// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// ReadFunc returns the transcript of a step of a run, or of the evaluation after it, and the steps that have one.
// Step -1 is the newest step.
type ReadFunc = func(ctx context.Context, run *v1alpha1.TrainingRun, step int64,
	evaluation bool) (transcript.Step, []int64, error)

// Bounds of the transcripts that are kept in memory.
const (
	mostTranscripts = 12
	// glance is the time for which a page waits for a transcript before it says that the transcript is being read.
	glance = 300 * time.Millisecond
	// patience is the time for which a part of a page waits for a transcript that has to be read again.
	patience = 30 * time.Second
	// forgotten is the time after which a failed read is tried again.
	forgotten = 20 * time.Second
)

// library keeps transcripts, and reads each transcript once. Transcripts of one run are read one after another.
type library struct {
	read ReadFunc
	// ctx is the context of Site.Run: a read continues when the page that asked for it is gone.
	ctx context.Context

	mu    sync.Mutex
	known map[volume]*reading
	turns map[types.UID]*sync.Mutex
	// reads are the reads in progress.
	reads sync.WaitGroup
}

// volume names a transcript.
type volume struct {
	uid        types.UID
	step       int64
	evaluation bool
	// at is the step of the run when its newest transcript was asked for.
	at int64
}

// reading is a transcript that is being read until done is closed.
type reading struct {
	done  chan struct{}
	began time.Time
	ended time.Time
	used  time.Time
	step  transcript.Step
	steps []int64
	err   error
}

func newLibrary(read ReadFunc) *library {
	return &library{read: read, known: map[volume]*reading{},
		turns: map[types.UID]*sync.Mutex{}}
}

// begin bounds all reads by a context.
func (l *library) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
}

// newest is the step that asks for the newest transcript.
const newest = -1

// get returns the transcript of a step. It waits for it up to a time, and returns false if it is still being read.
func (l *library) get(ctx context.Context, run *v1alpha1.TrainingRun, step int64, evaluation bool,
	wait time.Duration) (*reading, bool) {
	of := volume{uid: run.UID, step: step, evaluation: evaluation}
	if step == newest && run.Status.Step != nil {
		of.at = *run.Status.Step
	}
	found := l.entry(of, run)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-found.done:
		return found, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return found, false
}

// entry returns the reading of a transcript, which it begins if there is none.
func (l *library) entry(of volume, run *v1alpha1.TrainingRun) *reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[of]; found != nil && !found.isForgotten() {
		found.used = time.Now()
		return found
	}
	l.evict()
	found := &reading{done: make(chan struct{}), began: time.Now(), used: time.Now()}
	l.known[of] = found
	ctx, turn := l.ctx, l.turns[of.uid]
	if turn == nil {
		turn = &sync.Mutex{}
		l.turns[of.uid] = turn
	}
	l.reads.Go(func() {
		turn.Lock()
		defer turn.Unlock()
		step, steps, err := l.read(ctx, run, of.step, of.evaluation)
		l.mu.Lock()
		defer l.mu.Unlock()
		found.step, found.steps, found.err, found.ended = step, steps, err, time.Now()
		close(found.done)
	})
	return found
}

// isForgotten reports whether a reading failed a while ago.
func (r *reading) isForgotten() bool {
	return r.err != nil && !r.ended.IsZero() && time.Since(r.ended) > forgotten
}

// evict drops the least recently used transcript if there is no room for another.
func (l *library) evict() {
	for len(l.known) >= mostTranscripts {
		var oldest volume
		for of, r := range l.known {
			if l.known[oldest] == nil || r.used.Before(l.known[oldest].used) {
				oldest = of
			}
		}
		delete(l.known, oldest)
	}
}

// steps returns the steps of a run that are known to have a transcript.
func (l *library) steps(run *v1alpha1.TrainingRun, evaluation bool) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []int64
	for of, r := range l.known {
		if of.uid == run.UID && of.evaluation == evaluation {
			all = append(all, r.steps...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
