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

// modelOf fills in what the table of models knows of the name: ids that are nearly right train a model on
// other text, so that nothing is guessed.
// created is the day that formats with a date write into prompts.
func modelOf(m v1alpha1.Model, created time.Time) (contract.Model, error) {
	known, unknown := models.Lookup(m.Name)
	if unknown != nil && (m.Renderer == nil || m.Tokenizer == nil) {
		return contract.Model{}, unacceptable(problem.FormatUnknown, "%v", unknown)
	}
	renderer := ""
	if m.Renderer != nil {
		renderer = m.Renderer.Name
	} else {
		renderer = known.Renderer()
	}
	if all := models.Renderers(); !slices.Contains(all, renderer) {
		return contract.Model{}, unacceptable(problem.FormatUnknown,
			"model.renderer.name %q is not known; it is one of %s",
			renderer, strings.Join(all, ", "))
	}
	date := ""
	if strings.HasPrefix(renderer, datedFormat) {
		date = cmp.Or(m.Date, created.UTC().Format(time.DateOnly))
	}
	return contract.Model{
		Name:           m.Name,
		LoraRank:       int(*m.LoraRank),
		TrainAttention: slices.Contains(m.TrainModules, v1alpha1.TrainAttention),
		TrainMLP:       slices.Contains(m.TrainModules, v1alpha1.TrainMLP),
		TrainUnembed:   slices.Contains(m.TrainModules, v1alpha1.TrainUnembed),
		Seed:           *m.Seed,
		Renderer:       renderer,
		Date:           date,
		Tokenizer:      tokenizerOf(m.Tokenizer, known.Tokenizer),
	}, nil
}

// tokenizerOf is the tokenizer that was asked for, or else the model's. The digest under which the publisher
// ships a model's file holds for its repository, whichever revision of it is named, unless another is given.
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

// ranksAt says whether a URL's file is one of ranks: a tokenizer.json is recognised by its name.
func ranksAt(url string, known models.Tokenizer) string {
	if strings.HasSuffix(url, ".json") {
		return ""
	}
	return known.Ranks
}
