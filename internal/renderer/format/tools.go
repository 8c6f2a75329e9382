// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// Schema reads a tool's parameters. It returns nil if the tool has none.
func Schema(t chat.Tool) (*pyjson.Object, error) {
	if len(t.Parameters) == 0 {
		return nil, nil
	}
	value, err := pyjson.Parse(string(t.Parameters))
	if err != nil {
		return nil, fmt.Errorf("declaring tool %q: its parameters are not a JSON schema: %w", t.Name, err)
	}
	object, ok := value.(*pyjson.Object)
	if !ok {
		return nil, fmt.Errorf("declaring tool %q: its parameters are to be a JSON object", t.Name)
	}
	return object, nil
}

// Specification returns a tool as an object with name, description and parameters.
func Specification(t chat.Tool) (*pyjson.Object, error) {
	parameters, err := Schema(t)
	if err != nil {
		return nil, err
	}
	out := &pyjson.Object{Fields: []pyjson.Field{{Name: "name", Value: t.Name},
		{Name: "description", Value: t.Description}}}
	if parameters != nil {
		out.Set("parameters", parameters)
	}
	return out, nil
}

// Function returns a tool as an object of type function.
func Function(t chat.Tool) (*pyjson.Object, error) {
	spec, err := Specification(t)
	if err != nil {
		return nil, err
	}
	return &pyjson.Object{Fields: []pyjson.Field{{Name: "type", Value: "function"}, {Name: "function", Value: spec}}}, nil
}

// EachTool writes tools one by one and joins the results.
func EachTool(tools []chat.Tool, separator string, write func(chat.Tool) (string, error)) (string, error) {
	lines := make([]string, len(tools))
	for i, t := range tools {
		var err error
		if lines[i], err = write(t); err != nil {
			return "", err
		}
	}
	return strings.Join(lines, separator), nil
}

// AsJSON returns a function that writes the object of a tool as JSON.
func AsJSON(object func(chat.Tool) (*pyjson.Object, error)) func(chat.Tool) (string, error) {
	return func(t chat.Tool) (string, error) {
		o, err := object(t)
		if err != nil {
			return "", err
		}
		return pyjson.JSON(o), nil
	}
}
