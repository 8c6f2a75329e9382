// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// datedFormat is the prefix of the names of renderers whose prompts contain the date.
const datedFormat = "gpt_oss"

// ModelOf returns the settings of a model, filled in from the table of models. Nothing is guessed, since token ids that
// are nearly right train a model on other text. A model that is not in the table has its own chat template and
// tokenizer. created is the time whose day formats with a date write into prompts unless the spec has a date, and text
// is the template of the ConfigMap that the spec names; nil if it has not been read.
func ModelOf(m v1alpha1.Model, created time.Time, text *string) (contract.Model, error) {
	known, unknown := models.Lookup(m.Name)
	tokenizer := tokenizerOf(m.Tokenizer, known.Tokenizer)
	if unknown != nil && m.Tokenizer == nil {
		repository, err := ownRepository(m.Name, unknown)
		if err != nil {
			return contract.Model{}, err
		}
		tokenizer = &contract.Tokenizer{Repository: repository}
	}
	model := contract.Model{
		Name:           m.Name,
		LoraRank:       int(*m.LoraRank),
		TrainAttention: slices.Contains(m.TrainModules, v1alpha1.TrainAttention),
		TrainMLP:       slices.Contains(m.TrainModules, v1alpha1.TrainMLP),
		TrainUnembed:   slices.Contains(m.TrainModules, v1alpha1.TrainUnembed),
		Seed:           *m.Seed,
		Tokenizer:      tokenizer,
	}
	if !models.IsEmbedded(m.Name) {
		model.Begin, model.End = known.Tokenizer.Begin, known.Tokenizer.End
	}
	date := cmp.Or(m.Date, created.UTC().Format(time.DateOnly))
	if asked := templateAsked(m); asked != nil {
		var err error
		model.Renderer, model.Date = contract.RendererTemplate, date
		model.Template, err = templateOf(*asked, model, text)
		return model, err
	}
	if m.Renderer != nil {
		model.Renderer = m.Renderer.Name
	} else {
		model.Renderer = known.Renderer()
	}
	if all := models.Renderers(); !slices.Contains(all, model.Renderer) {
		return contract.Model{}, unacceptable(problem.FormatUnknown,
			"model.renderer.name %q is not known; it is one of %s",
			model.Renderer, strings.Join(all, ", "))
	}
	if strings.HasPrefix(model.Renderer, datedFormat) {
		model.Date = date
	}
	return model, nil
}

// tokenizerOf returns the tokenizer that the spec asks for, or else the tokenizer of the model. The known digest of the
// model's file counts for its repository at every revision, unless the spec has another digest.
func tokenizerOf(asked *v1alpha1.Tokenizer, known models.Tokenizer) *contract.Tokenizer {
	t := contract.Tokenizer{Repository: known.Repository, File: known.File, Ranks: known.Ranks, SHA256: known.SHA256}
	switch {
	case asked == nil && known.Repository == "":
		return nil
	case asked == nil:
		return &t
	case asked.URL != "":
		return &contract.Tokenizer{URL: asked.URL, SHA256: asked.SHA256, Ranks: ranksAt(asked.URL, known)}
	case asked.Repository != known.Repository:
		t = contract.Tokenizer{Repository: asked.Repository, File: known.File, Ranks: known.Ranks}
	}
	t.Revision = asked.Revision
	t.SHA256 = cmp.Or(asked.SHA256, t.SHA256)
	return &t
}

// ranksAt returns the family of the rank file at a URL; empty if the file is a tokenizer.json, which is recognised by
// its name.
func ranksAt(url string, known models.Tokenizer) string {
	if strings.HasSuffix(url, ".json") {
		return ""
	}
	return known.Ranks
}
