// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package models has the table of the known models: which renderers have their format, and where their tokenizer is.
// The table is models.json. A run that specifies renderer and tokenizer itself needs no row in it.
package models

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/nearest"
)

// Model is a row of the table.
type Model struct {
	// Name is the name of the model at the endpoint.
	Name string
	// Family is the family of models that share a format.
	Family string
	// Retired is the day on which hosted Tinker stopped serving the model, as YEAR-MONTH-DAY; "" if it serves the model
	// or never served it. Other servers may serve the model.
	Retired string
	// Untested names the part of the format that was not compared with another program, as a sentence without its end; ""
	// if everything was compared.
	Untested string
	// Renderers have the format of the model. The first is the default.
	Renderers []string
	Tokenizer Tokenizer
}

// Renderer returns the default renderer.
func (m Model) Renderer() string { return m.Renderers[0] }

// Tokenizer is where the tokenizer of a model is, with its configuration.
type Tokenizer struct {
	// Repository is the repository at the hub. It is empty if the tokenizer is built in.
	Repository string `json:"-"`
	// File is the path in the repository, of a tokenizer.json or a rank file.
	File string `json:"file"`
	// Ranks is the family of a rank file. It determines the pattern and the special tokens.
	Ranks string `json:"ranks"`
	// SHA256 is the digest of the published file, in hexadecimal digits. It is empty if the digest is not known for
	// certain.
	SHA256 string `json:"sha256"`
	// Begin and End are the tokens that begin and end a text. They are "" if the model has no such tokens.
	Begin string `json:"begin"`
	End   string `json:"end"`
}

//go:embed models.json
var table []byte

// document is the content of models.json.
type document struct {
	// Date is the day of the rows, as YEAR-MONTH-DAY.
	Date       string               `json:"date"`
	Tokenizers map[string]Tokenizer `json:"tokenizers"`
	// OtherRenderers are the renderers that no model of the table has.
	OtherRenderers []string `json:"otherRenderers"`
	// WithoutTools are the renderers whose formats cannot declare tools.
	WithoutTools []string `json:"withoutTools"`
	// UntestedTemplates has the models of hosted Tinker that have no renderer, and why their own templates were not
	// compared.
	UntestedTemplates map[string]string `json:"untestedTemplates"`
	Models            []modelRow        `json:"models"`
}

type modelRow struct {
	Name      string   `json:"name"`
	Family    string   `json:"family"`
	Retired   string   `json:"retired"`
	Untested  string   `json:"untested"`
	Tokenizer string   `json:"tokenizer"`
	Renderers []string `json:"renderers"`
}

// read reads the table. A test checks that it is valid.
var read = sync.OnceValue(func() document {
	var d document
	if err := json.Unmarshal(table, &d); err != nil {
		panic("models: models.json: " + err.Error())
	}
	return d
})

// all returns the models of the table.
var all = sync.OnceValue(func() []Model {
	d := read()
	out := make([]Model, len(d.Models))
	for i, row := range d.Models {
		out[i] = modelOf(row, d.Tokenizers[row.Tokenizer])
	}
	return out
})

// All returns the models in the order of the table. The rows that extend the table come first.
func All() []Model {
	rows := further.Load()
	if rows == nil {
		return all()
	}
	return slices.Concat(*rows, all())
}

// UnknownError reports that a model is not in the table.
type UnknownError struct {
	Model string
	// Known are the models of the table, in its order.
	Known []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	suggestion := ""
	if near := e.Nearest(); near != "" {
		suggestion = fmt.Sprintf("did you mean %s? ", near)
	}
	return fmt.Sprintf("model %q is unknown: %scorrect model.name, or set model.renderer and model.tokenizer; "+
		"docs/models.md lists the known models",
		e.Model, suggestion)
}

// Nearest returns the known model whose name is nearest; "" if none is near.
func (e *UnknownError) Nearest() string { return nearest.Name(e.Model, e.Known) }

// Lookup returns the row of a model. It ignores a colon and the name of a variant after it. Its error is an
// *UnknownError.
func Lookup(name string) (Model, error) {
	base, _, _ := strings.Cut(name, ":")
	unknown := &UnknownError{Model: name}
	for _, m := range All() {
		if m.Name == base {
			return m, nil
		}
		unknown.Known = append(unknown.Known, m.Name)
	}
	return Model{}, unknown
}

// UntestedTemplate returns why the template of a model was not compared with another program. It knows models of
// hosted Tinker that have no renderer in the table, and returns false for all others.
func UntestedTemplate(name string) (reason string, ok bool) {
	base, _, _ := strings.Cut(name, ":")
	reason, ok = read().UntestedTemplates[base]
	return reason, ok
}

// SameTokenizer reports whether two models are known to have the same tokenizer: because they are the same model, or
// because the table says so.
func SameTokenizer(a, b string) bool {
	if a == b {
		return true
	}
	one, missing := Lookup(a)
	other, missingToo := Lookup(b)
	return missing == nil && missingToo == nil && one.Tokenizer == other.Tokenizer
}
