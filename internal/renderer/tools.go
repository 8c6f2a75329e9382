// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// schema reads a tool's parameters; nil for none.
func schema(t chat.Tool) (*pyjson.Object, error) {
	if len(t.Parameters) == 0 {
		return nil, nil
	}
	value, err := pyjson.Parse(string(t.Parameters))
	if err != nil {
		return nil, fmt.Errorf("declaring tool %q: its parameters are no JSON schema: %w", t.Name, err)
	}
	object, ok := value.(*pyjson.Object)
	if !ok {
		return nil, fmt.Errorf("declaring tool %q: its parameters are to be a JSON object", t.Name)
	}
	return object, nil
}

// specification gives a tool as an object: name, description, parameters.
func specification(t chat.Tool) (*pyjson.Object, error) {
	parameters, err := schema(t)
	if err != nil {
		return nil, err
	}
	out := &pyjson.Object{Fields: []pyjson.Field{{Name: "name", Value: t.Name}, {Name: "description", Value: t.Description}}}
	if parameters != nil {
		out.Set("parameters", parameters)
	}
	return out, nil
}

// function gives a tool as the object that holds a function.
func function(t chat.Tool) (*pyjson.Object, error) {
	spec, err := specification(t)
	if err != nil {
		return nil, err
	}
	return &pyjson.Object{Fields: []pyjson.Field{{Name: "type", Value: "function"}, {Name: "function", Value: spec}}}, nil
}

// eachTool writes tools one by one and puts the lines together.
func eachTool(tools []chat.Tool, separator string, write func(chat.Tool) (string, error)) (string, error) {
	lines := make([]string, len(tools))
	for i, t := range tools {
		var err error
		if lines[i], err = write(t); err != nil {
			return "", err
		}
	}
	return strings.Join(lines, separator), nil
}

// asJSON writes what of a tool makes an object of it as JSON.
func asJSON(object func(chat.Tool) (*pyjson.Object, error)) func(chat.Tool) (string, error) {
	return func(t chat.Tool) (string, error) {
		o, err := object(t)
		if err != nil {
			return "", err
		}
		return pyjson.JSON(o), nil
	}
}

// object gives the fields of a value that is an object; nothing for any other.
func object(value any) *pyjson.Object {
	if o, ok := value.(*pyjson.Object); ok && o != nil {
		return o
	}
	return &pyjson.Object{}
}

// text gives a string of an object; "" when it has none of that name.
func text(o *pyjson.Object, name string) string {
	value, _ := o.Get(name)
	s, _ := value.(string)
	return pyjson.Text(s)
}
