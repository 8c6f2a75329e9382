// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// kind is the way in which a test uses a program.
type kind int

const (
	// kindScript passes the program its standard input.
	kindScript kind = iota
	// kindCall calls a function of the program.
	kindCall
	// kindAssertion evaluates the left side of an assertion.
	kindAssertion
)

// test is one test. Its expected result does not enter the sandbox.
type test struct {
	kind  kind
	stdin string
	// function is called with arguments, each a text of JSON; expression is evaluated.
	function, expression string
	arguments            []string

	output   string // expected output of a script
	expected any    // expected result of a call
}

// given is a test as data sets write it.
type given struct {
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	TestType string          `json:"testtype"`
	FnName   string          `json:"fn_name"`
	Metadata any             `json:"metadata"`
}

const functional = "functional"

// testsOf reads the tests of a row: a list of inputs with outputs, an object with a list of each, assertions, or JSON
// of these as a text.
func testsOf(row dataset.Row, field string) ([]test, error) {
	value, ok := row.AllFields()[field]
	if !ok {
		return nil, fmt.Errorf("reading tests: the row has no field %s", field)
	}
	function := nameIn(row.Fields["metadata"])
	if text, ok := value.(string); ok {
		decoded, err := decodeJSON(text)
		if err != nil {
			entry, _ := row.Fields["entry_point"].(string)
			tests, err := assertions(text, entry)
			return tests, inField(field, err)
		}
		value = decoded
	}
	tests, err := testsIn(value, function)
	return tests, inField(field, err)
}

func inField(field string, err error) error {
	if err != nil {
		return fmt.Errorf("reading tests of the field %s: %w", field, err)
	}
	return nil
}

func testsIn(value any, function string) ([]test, error) {
	if object, ok := value.(map[string]any); ok {
		if inputs, ok := object["inputs"].([]any); ok {
			outputs, _ := object["outputs"].([]any)
			name, _ := object["fn_name"].(string)
			return pairs(inputs, outputs, name)
		}
		value = []any{object}
	}
	items, _ := value.([]any)
	if len(items) == 0 {
		return nil, errors.New("there are none")
	}
	var tests []test
	for i, item := range items {
		made, err := oneTest(item, function)
		if err != nil {
			return nil, fmt.Errorf("test %d: %w", i+1, err)
		}
		tests = append(tests, made...)
	}
	return tests, nil
}

func oneTest(item any, function string) ([]test, error) {
	if text, ok := item.(string); ok {
		return assertions(text, "")
	}
	data, err := json.Marshal(item)
	if err != nil {
		return nil, err
	}
	var g given
	if err := json.Unmarshal(data, &g); err != nil {
		return nil, fmt.Errorf("it is no object with input and output: %w", err)
	}
	if g.Output == nil {
		return nil, errors.New("it has no output")
	}
	name := ""
	if g.TestType == functional || g.FnName != "" {
		for _, candidate := range []string{g.FnName, nameIn(g.Metadata), function} {
			if name == "" {
				name = candidate
			}
		}
		if name == "" {
			return nil, errors.New("it calls a function, and neither it nor the row has metadata.func_name")
		}
	}
	made, err := newTest(rawValue(g.Input), rawValue(g.Output), name)
	return []test{made}, err
}

func rawValue(raw json.RawMessage) any {
	value, err := decodeJSON(string(raw))
	if err != nil {
		return nil
	}
	return value
}

// nameIn returns the name of the function in metadata, which may be JSON as a text.
func nameIn(metadata any) string {
	if text, ok := metadata.(string); ok {
		metadata, _ = decodeJSON(text)
	}
	object, _ := metadata.(map[string]any)
	name, _ := object["func_name"].(string)
	return name
}

func pairs(inputs, outputs []any, function string) ([]test, error) {
	if len(inputs) == 0 || len(inputs) != len(outputs) {
		return nil, fmt.Errorf("there are %d inputs and %d outputs", len(inputs), len(outputs))
	}
	tests := make([]test, len(inputs))
	for i := range inputs {
		var err error
		if tests[i], err = newTest(inputs[i], outputs[i], function); err != nil {
			return nil, fmt.Errorf("test %d: %w", i+1, err)
		}
	}
	return tests, nil
}

func newTest(input, output any, function string) (test, error) {
	if function == "" {
		return test{kind: kindScript, stdin: textOf(input), output: textOf(output)}, nil
	}
	made := test{kind: kindCall, function: function}
	var err error
	if made.arguments, err = argumentsOf(input); err != nil {
		return test{}, err
	}
	if text, ok := output.(string); ok {
		made.expected, err = ofJSON(text)
	} else {
		made.expected, err = plainValue(output)
	}
	return made, err
}

// argumentsOf returns the arguments of a call: a line of JSON for each, or a list of them.
func argumentsOf(input any) ([]string, error) {
	if text, ok := input.(string); ok {
		lines := strings.Split(text, "\n")
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				return nil, fmt.Errorf("the argument %.80q is no JSON", line)
			}
		}
		return lines, nil
	}
	items, ok := input.([]any)
	if !ok {
		return nil, errors.New("its input is neither a text with an argument on each line nor a list of arguments")
	}
	arguments := make([]string, len(items))
	for i, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		arguments[i] = string(text)
	}
	return arguments, nil
}

// textOf returns a text, the lines of a list, or a value as JSON.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		lines := make([]string, len(v))
		for i, line := range v {
			lines[i] = textOf(line)
		}
		return strings.Join(lines, "\n")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
