// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package pyjson is what chat formats have inherited from the language of their reference: how it reads and
// writes JSON, turns values into text and trims white space. A model has seen tool calls that were written
// that way, so another spelling of the same value would be other tokens.
//
// Values are nil, bool, Integer, float64, string, []any and *Object. A string may hold lone surrogates, as
// JSON can spell them: each stands as the three bytes that UTF-8 would give it.
package pyjson

// Integer is a whole number in decimal digits, as long as it was written.
type Integer string

// Object is a JSON object that keeps its order.
type Object struct {
	Fields []Field
}

// Field of an object.
type Field struct {
	Name  string
	Value any
}

// Get returns the value of a name, and whether there is one.
func (o *Object) Get(name string) (value any, ok bool) {
	for _, f := range o.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return nil, false
}

// Set sets the value of a name. A name that exists already keeps its position.
func (o *Object) Set(name string, value any) {
	for i := range o.Fields {
		if o.Fields[i].Name == name {
			o.Fields[i].Value = value
			return
		}
	}
	o.Fields = append(o.Fields, Field{Name: name, Value: value})
}
