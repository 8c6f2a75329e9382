// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// JSONSchema has these metrics, each 0 or 1, besides MetricTruncated. Exactly one of the four is 1.
const (
	// MetricValid counts replies whose JSON the schema accepts.
	MetricValid = "valid"
	// MetricInvalid counts replies whose JSON the schema rejects.
	MetricInvalid = "invalid"
	// MetricNoJSON counts replies that ended without JSON.
	MetricNoJSON = "no_json"
)

// JSONSchema rewards a reply with 1 if the schema accepts its JSON, and any other reply with 0. A reply is JSON, or has
// it in its last fenced block. A reply that a token limit cut earns 0.
type JSONSchema struct {
	schema *jsonschema.Schema
}

// schemaURL names the schema for the compiler. Messages leave it out.
const schemaURL = "schema.json"

// NewJSONSchema compiles the schema. Its references must stay within it.
func NewJSONSchema(schema []byte) (*JSONSchema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	if !moderate(document) {
		return nil, fmt.Errorf("schema has %s: write a shorter number", immoderate)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, fmt.Errorf("schema is not a JSON Schema: %w", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, schemaError(err)
	}
	return &JSONSchema{schema: compiled}, nil
}

// noLoader loads no other schemas: a reward does not depend on a server's answer.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may only refer to its own parts, such as #/$defs/name")
}

// schemaError says where the schema is wrong.
func schemaError(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var causes *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &causes) {
		return fmt.Errorf("schema is not a JSON Schema: %w", err)
	}
	for len(causes.Causes) > 0 {
		causes = causes.Causes[0]
	}
	problem := causes.Error() // Its last line is the cause itself.
	problem = strings.TrimPrefix(lastLine(problem), "- ")
	return fmt.Errorf("schema is not a JSON Schema: %s; correct it there", problem)
}

// Grade implements Grader.
func (s *JSONSchema) Grade(_ context.Context, _ dataset.Row, reply environment.Reply) (Score, error) {
	found := MetricInvalid
	value, ok := findJSON(reply.Message.Content)
	switch {
	case reply.Truncated:
		found = MetricTruncated
	case !ok:
		found = MetricNoJSON
	case moderate(value) && s.schema.Validate(value) == nil:
		found = MetricValid
	}
	score := Score{Metrics: map[string]float64{MetricValid: 0, MetricInvalid: 0, MetricNoJSON: 0, MetricTruncated: 0}}
	score.Metrics[found] = 1
	score.Reward = score.Metrics[MetricValid]
	return score, nil
}

var _ Grader = (*JSONSchema)(nil)
