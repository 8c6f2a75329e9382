// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// baseModels are the base models by name. They do not change, so they need no lock.
type baseModels struct {
	names []string // in the order of the listing
	// others are the base models other than model.Base().
	others map[string]bool
	byName map[string]*model.BaseModel
	// rules reply in place of the network of frozen models.
	rules map[string]func(prompt string) string
}

func newBaseModels(options Options) baseModels {
	b := baseModels{others: map[string]bool{}, byName: map[string]*model.BaseModel{}, rules: options.Rules}
	b.names = slices.Concat(options.BaseModels, options.CountdownModels, options.SumsModels,
		slices.Sorted(maps.Keys(options.Vocabularies)))
	for _, name := range options.BaseModels {
		b.byName[name] = model.Base()
	}
	for _, name := range options.CountdownModels {
		b.others[name] = true
		b.byName[name] = model.CountdownBase()
	}
	for _, name := range options.SumsModels {
		b.others[name] = true
		b.byName[name] = model.SumsBase()
	}
	for name, vocabulary := range options.Vocabularies {
		b.others[name] = true
		b.byName[name] = model.Base().WithVocabulary(vocabulary)
	}
	for _, name := range slices.Sorted(maps.Keys(options.Rules)) {
		b.names, b.byName[name] = append(b.names, name), model.Base().WithLongContext()
	}
	return b
}

// reply returns a frozen model's reply to a prompt, cut to a number of tokens, and false for any other model.
func (b baseModels) reply(name string, prompt []byte, most int, stops []int32) (model.Sample, bool) {
	rule, ok := b.rules[name]
	if !ok {
		return model.Sample{}, false
	}
	var tokens []int32
	for _, c := range []byte(rule(string(prompt))) {
		tokens = append(tokens, int32(c))
	}
	tokens = append(tokens, model.TokenEnd)
	tokens = tokens[:min(len(tokens), most)]
	stopped := tokens[len(tokens)-1] == model.TokenEnd || slices.Contains(stops, tokens[len(tokens)-1])
	return model.Sample{Tokens: tokens, Logprobs: make([]float32, len(tokens)), Stopped: stopped}, true
}

func (b baseModels) has(name string) bool {
	_, ok := b.byName[name]
	return ok
}

// get returns the base model of a name. A checkpoint may belong to a model that an earlier process served, and its
// tokens have no meaning without that process's vocabulary.
func (b baseModels) get(name string) (*model.BaseModel, error) {
	base, ok := b.byName[name]
	if !ok {
		return nil, userError("base model %q is not supported", name)
	}
	return base, nil
}

// key returns the key of a base model's weights.
func (b baseModels) key(name string) weightsKey {
	if b.others[name] {
		return baseKey + weightsKey(name)
	}
	return baseKey
}

// weights returns the weights of a base model; "" is model.Base().
func (b baseModels) weights(name string) (*model.Weights, error) {
	if name == "" {
		return model.BaseWeights(model.Base()), nil
	}
	base, err := b.get(name)
	if err != nil {
		return nil, err
	}
	return model.BaseWeights(base), nil
}

func (b baseModels) capabilities() tinker.ServerCapabilities {
	var models []tinker.SupportedModel
	for _, name := range b.names {
		models = append(models, tinker.SupportedModel{
			ModelName: name, MaxContextLength: b.byName[name].Context(), Trainable: new(b.rules[name] == nil),
			Sampleable: new(true),
		})
	}
	return tinker.ServerCapabilities{SupportedModels: models}
}
