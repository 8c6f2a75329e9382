// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"encoding/json"
	"fmt"
)

// objects are rows whose JSON objects are stored as they were read, with the order of their fields.
type objects interface {
	Object(ctx context.Context, index int64) ([]byte, error)
}

// Object returns the JSON object of a row, with the fields that the definition maps to columns. No prompt is made of
// it.
func (t *Table) Object(ctx context.Context, name string, index int64) ([]byte, error) {
	s, ok := t.splits[name]
	if !ok || index < 0 || index >= s.count {
		return nil, noRow(name, index)
	}
	object, err := s.object(ctx, s.at(index))
	if err == nil && len(t.format.fields) > 0 {
		object, err = t.format.object(object)
	}
	if err != nil {
		return nil, rowFault(ctx, name, index, err)
	}
	return object, nil
}

func (s split) object(ctx context.Context, index int64) ([]byte, error) {
	if stored, ok := s.rows.(objects); ok {
		return stored.Object(ctx, index)
	}
	columns, err := s.rows.Columns(ctx, index)
	if err != nil {
		return nil, err
	}
	return json.Marshal(columns)
}

// object adds the fields that are mapped to columns, and removes the columns, which have other names now.
func (f *Format) object(object []byte) ([]byte, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(object, &columns); err != nil {
		return nil, fmt.Errorf("decoding a row: %w", err)
	}
	fields := map[string]json.RawMessage{}
	for name, column := range f.fields {
		value, ok := columns[column]
		if !ok || string(value) == "null" {
			known := map[string]any{}
			for c, v := range columns {
				if string(v) != "null" {
					known[c] = v
				}
			}
			return nil, lacks("dataset.fields."+name, column, known)
		}
		fields[name] = value
	}
	for name, value := range columns {
		if _, mapped := fields[name]; !mapped && !f.maps(name) {
			fields[name] = value
		}
	}
	return json.Marshal(fields)
}

// maps reports whether a field is mapped to a column.
func (f *Format) maps(column string) bool {
	for _, mapped := range f.fields {
		if mapped == column {
			return true
		}
	}
	return false
}
