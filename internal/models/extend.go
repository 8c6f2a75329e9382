// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// further has the rows that extend the table.
var further atomic.Pointer[[]Model]

// Extend adds rows to the table of this process, in the form of models.json. They take precedence over rows of the
// same names. A row may name a tokenizer of the embedded table.
func Extend(data []byte) error {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("decoding the table of models: %w", err)
	}
	if len(d.OtherRenderers)+len(d.WithoutTools)+len(d.UntestedTemplates) > 0 {
		return fmt.Errorf("reading the table of models: otherRenderers, withoutTools and untestedTemplates cannot be " +
			"extended: remove them")
	}
	known := Renderers()
	var rows []Model
	for _, row := range d.Models {
		t, ok := d.Tokenizers[row.Tokenizer]
		if !ok {
			t, ok = read().Tokenizers[row.Tokenizer]
		}
		unknown := slices.IndexFunc(row.Renderers, func(name string) bool { return !slices.Contains(known, name) })
		switch {
		case row.Name == "" || strings.Contains(row.Name, ":"):
			return fmt.Errorf("reading the table of models: the name %q is empty or has a colon", row.Name)
		case !ok:
			return fmt.Errorf("reading the table of models: %s has the tokenizer %q, which is in no table", row.Name,
				row.Tokenizer)
		case len(row.Renderers) == 0:
			return fmt.Errorf("reading the table of models: %s has no renderer: leave the row out, so that the model is "+
				"rendered by its own chat template", row.Name)
		case unknown >= 0:
			return fmt.Errorf("reading the table of models: %s has the renderer %q, which does not exist; it is one of %s",
				row.Name, row.Renderers[unknown], strings.Join(known, ", "))
		}
		rows = append(rows, modelOf(row, t))
	}
	if len(rows) == 0 {
		return fmt.Errorf("reading the table of models: it has no models")
	}
	further.Store(&rows)
	return nil
}

// IsEmbedded reports whether no row that extends the table of this process is for a model. Other programs of the
// operator do not know such rows.
func IsEmbedded(name string) bool {
	base, _, _ := strings.Cut(name, ":")
	rows := further.Load()
	return rows == nil || !slices.ContainsFunc(*rows, func(m Model) bool { return m.Name == base })
}

// modelOf returns the model of a row.
func modelOf(row modelRow, t Tokenizer) Model {
	if t.File != "" {
		t.Repository = row.Name
	}
	return Model{Name: row.Name, Family: row.Family, Retired: row.Retired, Untested: row.Untested,
		Renderers: row.Renderers, Tokenizer: t}
}
