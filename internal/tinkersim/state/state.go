// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is what a simulated server knows between two restarts: sessions, models, sampling
// sessions and promises, and the checkpoints as it found them. It knows nothing of HTTP. Its
// methods take and give the bodies of the API.
//
// The operations of a model are carried out by a goroutine of its own, in the order that package
// order gives them; samples are drawn by the engine of package sampling. Whatever goes wrong
// in an operation is its result. A request that cannot be taken at all gets an Error.
package state

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
)

// retention is how long results are kept: clients may lose one and ask again minutes later.
var retention = future.Retention{Delivered: 5 * time.Minute, Undelivered: 30 * time.Minute}

// State is everything that the server forgets when it restarts, and the checkpoints as it found
// them. It is safe for concurrent use.
type State struct {
	options  Options
	faults   *fault.Set
	counters *Counters
	bases    map[string]*model.BaseModel // by name
	store    *checkpoint.Store
	promises *future.Table
	engine   *sampling.Engine
	slots    chan struct{} // one token for each model that is being trained

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	trainers map[string]*trainer
	unloaded map[string]bool
	samplers map[string]*sampler
	asked    asked
}

// Options are the settings of a life. All must be given, but those that say so.
type Options struct {
	// Dir is the directory of the checkpoints.
	Dir string
	// BaseModels are the names of the base model.
	BaseModels []string
	// Vocabularies are further base models: the same one, with the tokens of the vocabulary under its name.
	Vocabularies map[string]model.Vocabulary
	// ForcedSamples force samples, for tests.
	ForcedSamples *sampling.ForcedSamples
	// Clock is what time it is.
	Clock func() time.Time
	// Random is where ids come from.
	Random io.Reader
	// GapPatience is how long chunks wait for a number that is missing.
	GapPatience time.Duration
	// SessionTimeout is how long a session lives without a sign of life.
	SessionTimeout time.Duration
	// TrainingSlots is how many models are trained at the same time.
	TrainingSlots int
	// SampleRows and SampleWaiting are those of sampling.Config, with its defaults.
	SampleRows, SampleWaiting int
}

// Begin opens the checkpoints and starts the decoders. The life goes on until End.
func Begin(options Options, faults *fault.Set, count *Counters) (*State, error) {
	store, err := checkpoint.Open(options.Dir, options.Clock)
	if err != nil {
		return nil, err
	}
	name := make([]byte, 6)
	if _, err := io.ReadFull(options.Random, name); err != nil {
		return nil, fmt.Errorf("naming the server's life: %w", err)
	}
	l := &State{
		options:  options,
		faults:   faults,
		counters: count,
		bases:    basesOf(options),
		store:    store,
		promises: future.NewTable("req-"+hex.EncodeToString(name), retention, options.Clock),
		slots:    make(chan struct{}, options.TrainingSlots),
		sessions: map[string]*session{},
		trainers: map[string]*trainer{},
		unloaded: map[string]bool{},
		samplers: map[string]*sampler{},
		asked:    asked{of: map[ask]creation{}},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.engine = sampling.New(sampling.Config{
		Rows:    options.SampleRows,
		Waiting: options.SampleWaiting,
		Load:    l.fetchWeights,
		Now:     options.Clock,
	})
	return l, nil
}

// basesOf gives the base models by their names.
func basesOf(options Options) map[string]*model.BaseModel {
	bases := map[string]*model.BaseModel{}
	for _, name := range options.BaseModels {
		bases[name] = model.Base()
	}
	for name, vocabulary := range options.Vocabularies {
		bases[name] = model.Base().Under(vocabulary)
	}
	return bases
}

// baseOf gives the base model of a name. Checkpoints may be of one that an earlier process served: what
// their tokens mean is not known then.
func (l *State) baseOf(name string) (*model.BaseModel, error) {
	base, ok := l.bases[name]
	if !ok {
		return nil, userError("base model %q is not supported", name)
	}
	return base, nil
}

// End ends all work and waits for it. What was not finished leaves nothing.
func (l *State) End() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.group.Wait()
	l.engine.Close()
	l.counters.countSampling(l.engine.Stats())
}

// Ended is closed when the life is over.
func (l *State) Ended() <-chan struct{} { return l.ctx.Done() }

// start runs a function that End waits for, or returns ErrEnded. The caller holds the mutex.
func (l *State) start(run func()) error {
	if l.closed {
		return ErrEnded
	}
	l.group.Go(run)
	return nil
}

// newID returns a random UUID.
func (l *State) newID() (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(l.options.Random, id[:]); err != nil {
		return "", fmt.Errorf("making an id: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
}

// Stats returns the counters and what the engine has done that End has not counted yet.
func (l *State) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.counters.read(sampling.Stats{})
	}
	return l.counters.read(l.engine.Stats())
}
