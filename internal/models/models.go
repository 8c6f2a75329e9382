// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package models is the table of the models that are known by name: which renderers speak their format and
// where their tokenizer is. The table is data, models.json; a run can name renderer and tokenizer itself, and
// then needs no row in it.
package models

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// Model is one row.
type Model struct {
	// Name of the model at the endpoint.
	Name string
	// Renderers that speak its format. The first is the one to take where nothing is said.
	Renderers []string
	Tokenizer Tokenizer
}

// Renderer is the one to take where nothing is said.
func (m Model) Renderer() string { return m.Renderers[0] }

// Tokenizer is where a model's tokenizer is, and what its configuration says of it.
type Tokenizer struct {
	// Repository at the hub; empty for a tokenizer that is built in.
	Repository string
	// File in it: a tokenizer.json, or ranks.
	File string
	// Ranks is the family of a file of ranks, which says nothing of its pattern and its special tokens.
	Ranks string
	// SHA256 of the file as its publisher ships it, in hexadecimal digits; empty where that is not known for
	// certain.
	SHA256 string
	// Begin and End are the tokens that begin and end a text; "" for none.
	Begin, End string
}

//go:embed models.json
var table []byte

// document is models.json.
type document struct {
	Tokenizers map[string]tokenizerRow `json:"tokenizers"`
	Models     []modelRow              `json:"models"`
}

type tokenizerRow struct {
	File   string `json:"file"`
	Ranks  string `json:"ranks"`
	SHA256 string `json:"sha256"`
	Begin  string `json:"begin"`
	End    string `json:"end"`
}

type modelRow struct {
	Name      string   `json:"name"`
	Tokenizer string   `json:"tokenizer"`
	Renderers []string `json:"renderers"`
}

// all reads the table, which a test shows to be whole.
var all = sync.OnceValue(func() []Model {
	var d document
	if err := json.Unmarshal(table, &d); err != nil {
		panic("models: models.json: " + err.Error())
	}
	out := make([]Model, len(d.Models))
	for i, row := range d.Models {
		t := d.Tokenizers[row.Tokenizer]
		out[i] = Model{Name: row.Name, Renderers: row.Renderers,
			Tokenizer: Tokenizer{File: t.File, Ranks: t.Ranks, SHA256: t.SHA256, Begin: t.Begin, End: t.End}}
		if t.File != "" {
			out[i].Tokenizer.Repository = row.Name
		}
	}
	return out
})

// All returns the table, in its order.
func All() []Model { return all() }

// UnknownError reports that a model is not in the table.
type UnknownError struct {
	Model string
	// Known are the models that are, in the order of the table.
	Known []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("nothing is known of model %q: set model.renderer and model.tokenizer, or take one of the models that are known: %s",
		e.Model, strings.Join(e.Known, ", "))
}

// Lookup returns the row of a model. What follows a colon in its name is a variant of the same model. An error
// is an *UnknownError.
func Lookup(name string) (Model, error) {
	base, _, _ := strings.Cut(name, ":")
	unknown := &UnknownError{Model: name}
	for _, m := range all() {
		if m.Name == base {
			return m, nil
		}
		unknown.Known = append(unknown.Known, m.Name)
	}
	return Model{}, unknown
}
