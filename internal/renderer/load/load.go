// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package load makes the renderer that a run file asks for: it finds the tokenizer's file, by its digest
// where there is one, and puts the two together. It decides nothing that the run file says.
package load

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// Error says that a model's format cannot be had: it would fail again.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return "preparing the model's format: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Renderer is the format of one model's conversations.
type Renderer struct {
	renderer.Renderer
	model contract.Model
	// digest of the tokenizer's file; empty for one that is built in.
	digest string
}

// ForModel returns the format of a model. An error is an *Error, unless the file could not be reached, which may be
// otherwise later, or ctx ended.
func ForModel(ctx context.Context, files *fetch.Fetcher, model contract.Model) (*Renderer, error) {
	// A model that the table does not have names its renderer and tokenizer, and has no tokens to begin and
	// end texts with; the renderer says so if it needs them.
	known, unknown := models.Lookup(model.Name)
	name := model.Renderer
	if name == "" {
		if unknown != nil {
			return nil, &Error{Err: unknown}
		}
		name = known.Renderer()
	}
	tokens, digest, err := tokens(ctx, files, model)
	if err != nil {
		return nil, err
	}
	r, err := families.New(name, tokens, families.Options{
		Date: model.Date, Begin: known.Tokenizer.Begin, End: known.Tokenizer.End,
	})
	if err != nil {
		return nil, &Error{Err: err}
	}
	return &Renderer{Renderer: r, model: model, digest: digest}, nil
}

// Check reports whether this is the format of a model. A digest that the model did not have when the format was
// made must be that of the file that was read.
func (f *Renderer) Check(model contract.Model) error {
	own, other := f.model.Tokenizer, model.Tokenizer
	switch {
	case f.model.Name != model.Name || f.model.Renderer != model.Renderer || (own == nil) != (other == nil):
		return fmt.Errorf("this program speaks the format %s of %s, and not %s of %s", f.model.Renderer, f.model.Name, model.Renderer, model.Name)
	case own == nil:
		return nil
	case other.SHA256 != "" && other.SHA256 != f.digest:
		return fmt.Errorf("the tokenizer that was read has sha256 %s, and the run's has %s", f.digest, other.SHA256)
	}
	source := *other
	if source.SHA256 = own.SHA256; source != *own {
		return fmt.Errorf("the tokenizer was read from %+v, and the run's is at %+v", *own, *other)
	}
	return nil
}

// tokens finds the tokenizer and the digest of its file.
func tokens(ctx context.Context, files *fetch.Fetcher, model contract.Model) (found tokenizer.Tokenizer, digest string, err error) {
	if model.Tokenizer == nil {
		if found, err = tokenizer.ForModel(model.Name); err != nil {
			return nil, "", &Error{Err: err}
		}
		return found, "", nil
	}
	t := model.Tokenizer
	source := fetch.Source{Repository: t.Repository, Revision: t.Revision, File: t.File, URL: t.URL, Ranks: t.Ranks, SHA256: t.SHA256}
	found, digest, err = files.Load(ctx, source)
	switch {
	case err != nil && fetch.IsFinal(err):
		return nil, "", &Error{Err: err}
	case err != nil:
		return nil, "", err
	}
	return found, digest, nil
}
