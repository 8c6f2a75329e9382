// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package pyjson reads and writes JSON, converts values to text and trims white space as Python, the language of the
// reference, does. Models were trained on tool calls in that spelling, and another spelling of a value would be other
// tokens.
//
// Values are nil, bool, Integer, float64, string, []any and *Object. A string may have lone surrogates, as JSON can
// spell them: each is represented by the three bytes that UTF-8 would give it.
package pyjson

// Integer is a whole number in decimal digits, of any length.
type Integer string

// Object is a JSON object that keeps the order of its fields.
type Object struct {
	Fields []Field
}

// Field is a field of an object.
type Field struct {
	Name  string
	Value any
}

// Get returns the value of a name, and whether it exists.
func (o *Object) Get(name string) (value any, ok bool) {
	for _, f := range o.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return nil, false
}

// Value returns the value of a name, or nil if it does not exist.
func (o *Object) Value(name string) any {
	value, _ := o.Get(name)
	return value
}

// List returns the list of a name, or nil if there is no list.
func (o *Object) List(name string) []any {
	list, _ := o.Value(name).([]any)
	return list
}

// Word returns the text of a name, or "" if there is no text.
func (o *Object) Word(name string) string {
	text, _ := o.Value(name).(string)
	return Text(text)
}

// ObjectOf returns a value that is an object, and an empty object for any other value.
func ObjectOf(value any) *Object {
	if o, ok := value.(*Object); ok && o != nil {
		return o
	}
	return &Object{}
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
