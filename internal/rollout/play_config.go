// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
)

// playConfig has the environments and settings that a worker plays, as a learner reported them.
type playConfig struct {
	// encoded is the JSON that play was read from.
	encoded []byte
	play    contract.Play
	// renderer is nil until the tokenizer is read.
	renderer renderer.Renderer
	built    *environments
}

// ConfigError reports that this program cannot play a definition or setting of the learner, and never will.
type ConfigError struct{ Err error }

// Error implements error.
func (e *ConfigError) Error() string { return "reading what is to be played: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// newPlayConfig reads the JSON of contract.Play. It returns a *ConfigError for a version that this worker cannot
// read, and for a model whose format is not the worker's: the run would train on other text.
func newPlayConfig(data []byte, format *format, built *environments) (*playConfig, error) {
	play, err := contract.DecodePlay(data)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	c := &playConfig{encoded: data, play: play, built: built}
	if known := format.known(); known != nil {
		return c, c.use(known)
	}
	if format.load != nil {
		return c, nil // readRenderer reads the tokenizer, which may take long.
	}
	if c.renderer, err = families.ForModel(c.play.Model.Name); err != nil {
		return nil, &ConfigError{Err: err}
	}
	return c, nil
}

// use sets the renderer. It returns a *ConfigError if the renderer is for the format of another model.
func (c *playConfig) use(speaks *load.Renderer) error {
	if err := speaks.Check(c.play.Model); err != nil {
		return &ConfigError{Err: err}
	}
	c.renderer = speaks.Renderer
	return nil
}

// readRenderer reads the tokenizer, unless it has been read or is built in. It is called before the first lease.
func (c *playConfig) readRenderer(ctx context.Context, format *format) error {
	if c.renderer != nil || format.load == nil {
		return nil
	}
	speaks, err := format.read(ctx, c.play.Model)
	if err != nil {
		return err
	}
	return c.use(speaks)
}

// format holds the renderer of the run's model, which is loaded once. The zero value has no renderer to load.
type format struct {
	load func(ctx context.Context, model contract.Model) (*load.Renderer, error)

	loaded atomic.Pointer[load.Renderer]
}

// known returns the renderer; nil before it is loaded.
func (f *format) known() *load.Renderer { return f.loaded.Load() }

// read loads the renderer of a model. A *ConfigError is final.
func (f *format) read(ctx context.Context, model contract.Model) (*load.Renderer, error) {
	loaded, err := f.load(ctx, model)
	var final *load.Error
	if errors.As(err, &final) {
		return nil, &ConfigError{Err: err}
	}
	if err == nil {
		f.loaded.Store(loaded)
	}
	return loaded, err
}

// largestGroup returns the largest number of members that a group may have.
func (c *playConfig) largestGroup() int {
	largest := 1
	for _, e := range c.play.Environments {
		largest = max(largest, e.GroupSize)
	}
	for _, evaluation := range c.play.Evaluations {
		for _, e := range evaluation {
			largest = max(largest, e.GroupSize)
		}
	}
	return largest
}

// prepare returns the spec of a lease's group, and a player for it. The caller fills in policy, gate and progress.
func (c *playConfig) prepare(ctx context.Context, lease exchange.Lease) (episode.Spec, *episode.Player, error) {
	list := c.play.Environments
	if lease.Key.Kind == rl.Evaluate {
		list = c.play.Evaluations[lease.Key.Evaluation]
	}
	at := slices.IndexFunc(list, func(e contract.Environment) bool { return e.Name == lease.Environment })
	if at < 0 {
		return episode.Spec{}, nil, fmt.Errorf("no environment %q is known for kind %s and evaluation %q", lease.Environment,
			lease.Key.Kind, lease.Key.Evaluation)
	}
	env, err := c.built.get(ctx, list[at].Definition)
	if err != nil {
		return episode.Spec{}, nil, err
	}
	spec := episode.Spec{
		Key: lease.Key, Settings: list[at], Split: lease.Split, Task: lease.Task,
		GroupSize: lease.GroupSize, MinMembers: lease.MinMembers, Seed: lease.Seed,
		StepRewards: c.play.StepRewards && lease.Key.Kind == rl.Train,
		Transcript:  lease.Transcript,
		Faulty:      lease.Faulty,
	}
	return spec, &episode.Player{
		Environment: env, Renderer: c.rendererFor(list[at].Definition), Calls: c.built.calls,
	}, nil
}

// rendererFor returns the renderer with the dialect of calls that an environment asks for.
func (c *playConfig) rendererFor(definition contract.Definition) renderer.Renderer {
	dialect := definition.Interaction.Dialect()
	if dialect == "" {
		return c.renderer
	}
	return families.WithCalls(c.renderer, dialect == settings.QwenXML)
}

// environments holds the environments that were built, by the digest of their definition.
type environments struct {
	builder Builder
	// calls counts the calls of environments that do not return.
	calls *environment.Calls
	mu    sync.Mutex
	built map[string]environment.Environment
}

func (e *environments) get(ctx context.Context, definition contract.Definition) (environment.Environment, error) {
	digest, err := contract.DefinitionDigest(definition)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if env, ok := e.built[digest]; ok {
		return env, nil
	}
	env, err := environment.Call(ctx, e.calls, "building an environment",
		func(ctx context.Context) (environment.Environment, error) {
			return e.builder.Build(ctx, definition)
		})
	if err != nil {
		return nil, err
	}
	if e.built == nil {
		e.built = map[string]environment.Environment{}
	}
	e.built[digest] = env
	return env, nil
}
