// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package load builds the renderer of a run file: it fetches the tokenizer's file, by its digest if there is one, and
// builds the renderer with it.
package load

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// Error reports that the renderer of a model cannot be built. A retry would also fail.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return "preparing the model's format: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Renderer is the renderer of a model, with its tokenizer.
type Renderer struct {
	renderer.Renderer
	// Tokens is the tokenizer, and Begin and End are the ids that begin and end a text; nil if the model has none.
	Tokens     tokenizer.Tokenizer
	Begin, End []int32

	model contract.Model
	// digest is the digest of the tokenizer's file. It is empty for a built-in tokenizer.
	digest string
}

// ForModel returns the renderer of a model. Its error is an *Error, unless ctx has ended or the tokenizer's file
// cannot be read, which may be repaired.
func ForModel(ctx context.Context, files *fetch.Fetcher, model contract.Model) (*Renderer, error) {
	// A model that is not in the table specifies its renderer and tokenizer, and has no tokens that begin and end
	// texts. A renderer that needs them fails.
	known, unknown := models.Lookup(model.Name)
	known.Tokenizer.Begin = cmp.Or(model.Begin, known.Tokenizer.Begin)
	known.Tokenizer.End = cmp.Or(model.End, known.Tokenizer.End)
	if model.Template != nil {
		return forTemplate(ctx, files, model, known)
	}
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
	return &Renderer{
		Renderer: r, Tokens: tokens, Begin: special(tokens, known.Tokenizer.Begin), End: special(tokens, known.Tokenizer.End),
		model: model, digest: digest,
	}, nil
}

// special returns the id of a special token; nil if the model has no such token.
func special(tokens tokenizer.Tokenizer, name string) []int32 {
	if id, ok := tokens.Special(name); ok && name != "" {
		return []int32{id}
	}
	return nil
}

// Check reports whether this is the renderer of a model. A digest that the model did not have when the renderer was
// built must be the digest of the file that was read.
func (f *Renderer) Check(model contract.Model) error {
	own, other := f.model.Tokenizer, model.Tokenizer
	switch {
	case !sameTemplate(f.model.Template, model.Template):
		return fmt.Errorf("this program speaks another chat template of %s than the run's", model.Name)
	case f.model.Name != model.Name || f.model.Renderer != model.Renderer || (own == nil) != (other == nil):
		return fmt.Errorf("this program speaks the format %s of %s, and not %s of %s", f.model.Renderer, f.model.Name,
			model.Renderer, model.Name)
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

// tokens loads the tokenizer and returns the digest of its file.
func tokens(ctx context.Context, files *fetch.Fetcher,
	model contract.Model) (found tokenizer.Tokenizer, digest string, err error) {
	if model.Tokenizer == nil {
		if found, err = tokenizer.ForModel(model.Name); err != nil {
			return nil, "", &Error{Err: err}
		}
		return found, "", nil
	}
	t := model.Tokenizer
	source := fetch.Source{Repository: t.Repository, Revision: t.Revision, File: t.File, URL: t.URL, Ranks: t.Ranks,
		SHA256: t.SHA256}
	loaded, digest, err := files.Load(ctx, source)
	if err != nil {
		return nil, "", err
	}
	return loaded, digest, nil
}
