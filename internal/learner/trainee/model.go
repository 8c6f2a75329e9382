// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Model is a model of this attempt. Only one goroutine may use it.
type Model struct {
	api   endpoint
	model *client.Model
	// averages says that the server averages gradients over tokens and sequences.
	averages bool
	// described is the metadata of checkpoints besides their step; nil if they carry no metadata.
	described tinker.Metadata
	// saved is set once a save may have been submitted, and ended is called when the model is no longer used, unless it is
	// nil.
	saved bool
	ended func(model string, saved bool)
	// Number of the model within the attempt, from 1.
	Number int
	// Cold is set when the optimizer was not restored with the state.
	Cold bool
}

// Step is one optimizer step, or several substeps of one.
type Step struct {
	Datums   []rl.Datum
	Substeps int
	Losses   Losses
	Adam     tinker.AdamParams
}

// Replies are the results of a step's operations.
type Replies struct {
	// Logprobs of the targets by datum; nil if the endpoint returns none.
	Logprobs [][]float32
	// Metrics of the passes, summed or taken from the last, and of the last optimizer step.
	Metrics map[string]float64
}

// substep is an optimizer step in flight, with the passes before it: one for each loss.
type substep struct {
	passes []passInFlight
	optim  *client.Future[tinker.OptimStepResult]
	size   int
}

// Training is a step whose operations are in flight. The zero value is a step without data.
type Training struct{ substeps []substep }

// Train submits the passes and optimizer steps of a step back to back. After an error, here or of Wait, the
// model must be abandoned.
func (m *Model) Train(ctx context.Context, step Step) (Training, error) {
	edges := rl.SplitSubsteps(len(step.Datums), step.Substeps)
	var training Training
	for i := range len(edges) - 1 {
		s, err := m.submit(ctx, step, step.Datums[edges[i]:edges[i+1]])
		if err != nil {
			return Training{}, err
		}
		training.substeps = append(training.substeps, s)
	}
	return training, nil
}

// Wait waits for all replies and checks them.
func (t Training) Wait(ctx context.Context) (Replies, error) {
	replies := Replies{Metrics: map[string]float64{}}
	for _, s := range t.substeps {
		if err := s.collect(ctx, &replies); err != nil {
			return Replies{}, err
		}
	}
	return replies, nil
}

func (m *Model) submit(ctx context.Context, step Step, datums []rl.Datum) (substep, error) {
	passes, err := m.submitPasses(ctx, datums, step.Losses)
	if err != nil {
		return substep{}, err
	}
	optim, err := m.model.OptimStep(ctx, step.Adam)
	if err != nil {
		return substep{}, stepping.Failed(err, "stepping the optimizer")
	}
	return substep{passes: passes, optim: optim, size: len(datums)}, nil
}

// collect waits for all replies, so that none is in flight when one fails.
func (s substep) collect(ctx context.Context, replies *Replies) error {
	results, passErr := s.waitForPasses(ctx)
	optim, optimErr := s.optim.Wait(ctx)
	if passErr != nil {
		return passing.Failed(passErr, "computing gradients")
	}
	if optimErr != nil {
		return stepping.Failed(optimErr, "stepping the optimizer")
	}
	logprobs, complete := make([][]float32, s.size), true
	for i, p := range s.passes {
		all, err := p.collect(results[i], replies, logprobs)
		if err != nil {
			return err
		}
		complete = complete && all
	}
	if complete {
		replies.Logprobs = append(replies.Logprobs, logprobs...)
	}
	maps.Copy(replies.Metrics, optim.Metrics)
	return nil
}

// waitForPasses returns the results of all passes, and the first error.
func (s substep) waitForPasses(ctx context.Context) (results []tinker.ForwardBackwardResult, err error) {
	for _, p := range s.passes {
		result, failed := p.future.Wait(ctx)
		if err == nil {
			err = failed
		}
		results = append(results, result)
	}
	return results, err
}

// lossSum is the one metric of a pass that adds up over passes.
const lossSum = "loss:sum"

// Accepts reports whether the endpoint accepts the data, by forward passes, which leave no gradient.
func (m *Model) Accepts(ctx context.Context, datums []rl.Datum, losses Losses) (bool, error) {
	for _, p := range losses.split(datums) {
		result, err := m.model.ForwardEach(ctx, encode(p.datums, p.loss.Name), p.loss)
		if err == nil {
			_, err = result.Wait(ctx)
		}
		err = passing.Failed(err, "trying data")
		if failure.CodeOf(err) == problem.DataRefused {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// Save is a save in flight.
type Save struct {
	model  *Model
	kind   tinker.Kind
	name   string
	future *client.Future[tinker.SaveResult]
}

// SaveState submits a save of weights and optimizer. A clean answer, which Wait gives, is the commit of the
// step.
func (m *Model) SaveState(ctx context.Context, name rl.CheckpointName) (*Save, error) {
	m.saved = true
	request := m.saveRequest(name)
	future, err := m.model.SaveState(ctx, request)
	if err != nil {
		return nil, saving.Failed(err, "saving state")
	}
	return &Save{model: m, kind: tinker.KindState, name: request.Name, future: future}, nil
}

// SaveSampler saves the weights for sampling and returns the path.
func (m *Model) SaveSampler(ctx context.Context, name rl.CheckpointName) (string, error) {
	m.saved = true
	request := m.saveRequest(name)
	future, err := m.model.SaveSampler(ctx, request)
	if err != nil {
		return "", saving.Failed(err, "saving sampler weights")
	}
	return (&Save{model: m, kind: tinker.KindSampler, name: request.Name, future: future}).Wait(ctx)
}

// saveRequest is the request to save under a name. A save never overwrites a checkpoint: a copy of an earlier save
// that arrives after later steps would otherwise put their weights under the earlier name.
func (m *Model) saveRequest(name rl.CheckpointName) client.SaveRequest {
	request := client.SaveRequest{Name: name.String()}
	if m.described != nil {
		request.UserMetadata = maps.Clone(m.described)
		request.UserMetadata[MetadataStep] = strconv.FormatInt(name.Step, 10)
	}
	return request
}

// Wait waits for the answer and returns the path. It checks that the answer names the requested path. A checkpoint that
// "exists already" under the model and name is the requested one, once the endpoint lists it.
func (s *Save) Wait(ctx context.Context) (string, error) {
	result, err := s.future.Wait(ctx)
	model := s.model.model.ID()
	want := tinker.Path{Run: model, Kind: s.kind, Name: s.name}.String()
	if client.CategoryFrom(err) == tinker.CategoryExists {
		checkpoints, lookErr := s.model.api.RunCheckpoints(ctx, model)
		if lookErr != nil {
			return "", saving.Failed(lookErr, "looking %s up", s.name)
		}
		if slices.ContainsFunc(checkpoints, func(c tinker.Checkpoint) bool { return c.TinkerPath == want }) {
			return want, nil
		}
	}
	if err != nil {
		return "", saving.Failed(err, "saving %s %s", s.kind, s.name)
	}
	if s.kind == tinker.KindSampler && result.Path == shortSamplerPath(model, s.name) {
		return want, nil
	}
	if result.Path != want {
		return "", unclean("saving %s answered with %q", want, result.Path)
	}
	return want, nil
}

// shortSamplerPath returns the path with which some servers answer a save of sampler weights. These servers also
// accept the path with the kind.
func shortSamplerPath(model, name string) string { return "tinker://" + model + "/" + name }

// Abandon unloads the model if the endpoint supports that. The model must not be used afterwards.
func (m *Model) Abandon(ctx context.Context) {
	_ = m.api.UnloadModel(ctx, m.model.ID())
	if m.ended != nil {
		m.ended(m.model.ID(), m.saved)
	}
}

// ID returns the id of the model.
func (m *Model) ID() string { return m.model.ID() }

// StatePath returns the path that a state of a name will have.
func (m *Model) StatePath(name string) string {
	return tinker.Path{Run: m.model.ID(), Kind: tinker.KindState, Name: name}.String()
}
