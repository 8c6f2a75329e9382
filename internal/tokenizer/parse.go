// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse reads a tokenizer.json. It refuses everything unknown, down to the names of fields, with an error that wraps a
// *FieldError: ids that are nearly right are worse than none.
func Parse(tokenizerJSON []byte) (*BPE, error) {
	t, err := parse(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer.json: %w", err)
	}
	return t, nil
}

func parse(data []byte) (*BPE, error) {
	if !utf8.Valid(data) {
		return nil, problem("the file is not UTF-8")
	}
	c := &cursor{data: data}
	file, err := fields(c, "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
		"post_processor", "decoder", "model")
	if err != nil {
		return nil, err
	}
	if c.next() != 0 || c.at < len(data) {
		return nil, c.unexpected("the end of the file")
	}
	t := &BPE{}
	for _, step := range []struct {
		field string
		read  func(value []byte) error
	}{
		{"version", only(`"1.0"`)},
		{"truncation", only(`null`)},
		{"padding", only(`null`)},
		{"normalizer", t.readNormalizer},
		{"pre_tokenizer", t.readPreTokenizer},
		{"post_processor", readPostProcessor},
		{"decoder", readDecoder},
	} {
		if err := step.read(file[step.field]); err != nil {
			return nil, within(step.field, err)
		}
	}
	b := newBuilder(t)
	if err := b.readModel(file["model"]); err != nil {
		return nil, within("model", err)
	}
	if err := b.readAdded(file["added_tokens"]); err != nil {
		return nil, within("added_tokens", err)
	}
	return b.finish(), nil
}

// fields reads an object with known field names, and returns the texts of its values.
func fields(c *cursor, known ...string) (map[string][]byte, error) {
	values := map[string][]byte{}
	err := c.object(func(key []byte) error {
		name := string(key)
		if !slices.Contains(known, name) {
			return within(name, problem("the field is not known; known are %s", strings.Join(known, ", ")))
		}
		if _, twice := values[name]; twice {
			return within(name, problem("the field occurs twice"))
		}
		value, err := c.value()
		values[name] = value
		return within(name, err)
	})
	return values, err
}

// only returns a check that accepts one of the texts, or a missing value.
func only(texts ...string) func(value []byte) error {
	return func(value []byte) error {
		if value == nil || slices.Contains(texts, string(value)) {
			return nil
		}
		return problem("%s is not known; known is %s", short(value), strings.Join(texts, ", "))
	}
}

func short(value []byte) []byte {
	const most = 80
	if len(value) <= most {
		return value
	}
	return append(value[:most:most], "…"...)
}

// decode reads a small value, which may only have the fields of the struct that target points to.
func decode(value []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return problem("%s in %s", strings.TrimPrefix(err.Error(), "json: "), short(value))
	}
	return nil
}

// isNull reports whether a value is missing or null.
func isNull(value []byte) bool { return value == nil || string(value) == "null" }

// kind returns the type of a part of the file.
func kind(value []byte) (string, error) {
	var part struct{ Type string }
	if err := json.Unmarshal(value, &part); err != nil {
		return "", problem("%v in %s", err, short(value))
	}
	return part.Type, nil
}
