// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// Values are nil (none), bool, *big.Int, float64, str, and pointers to the types below.

// undefined is a name or attribute that does not exist.
type undefined struct{ message string }

// list is a list or a tuple. Nothing changes it once it is made.
type list struct {
	items []any
	tuple bool
}

// dict keeps the order of its keys.
type dict struct {
	keys, values []any
	index        map[string]int
}

// namespace is a value with attributes that set can change.
type namespace struct{ attrs *dict }

// view is the result of keys(), values() or items() of a dict.
type view struct {
	of   *dict
	kind string
}

// span is a range().
type span struct{ start, stop, step int }

// iterator is a generator: its items can be taken once.
type iterator struct {
	next func() (any, bool)
	name string
}

// function is a function, a method, or a class that a template can call.
type function struct {
	name string
	call func(e *evaluator, a args) any
	attr func(name string) (any, bool)
}

func newDict() *dict { return &dict{index: map[string]int{}} }

func (d *dict) len() int { return len(d.keys) }

// get returns the value of a key. usable is false if the key cannot be hashed.
func (d *dict) get(e *evaluator, key any) (value any, found, usable bool) {
	hash, usable := e.hash(key, 0)
	if !usable {
		return nil, false, false
	}
	i, found := d.index[hash]
	if !found {
		return nil, false, true
	}
	return d.values[i], true, true
}

func (d *dict) set(e *evaluator, key, value any) {
	hash, ok := e.hash(key, 0)
	if !ok {
		e.fail("unhashable type: '%s'", typeName(key))
	}
	d.put(hash, key, value)
}

func (d *dict) put(hash string, key, value any) {
	if i, ok := d.index[hash]; ok {
		d.values[i] = value
		return
	}
	d.index[hash] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

// name returns the value of a key that is a string.
func (d *dict) name(key string) (any, bool) {
	i, ok := d.index["s"+key]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// hash returns a text that is equal for equal keys. It returns false if the key cannot be hashed.
func (e *evaluator) hash(key any, depth int) (string, bool) {
	e.deep(depth)
	switch k := key.(type) {
	case nil:
		return "none", true
	case str:
		return "s" + k.text, true
	case bool, *big.Int, float64:
		return hashNumber(k), true
	case *undefined:
		return "undefined", true
	case *list:
		if !k.tuple {
			return "", false
		}
		out := "("
		for _, item := range k.items {
			h, ok := e.hash(item, depth+1)
			if !ok {
				return "", false
			}
			out += strconv.Itoa(len(h)) + ":" + h
			e.spend(1 + len(out)/32)
		}
		return out, true
	case *dict:
		return "", false
	}
	return fmt.Sprintf("p%p", key), true
}

func hashNumber(v any) string {
	if f, ok := v.(float64); ok {
		whole := toBig(f)
		if whole == nil {
			return "f" + strconv.FormatFloat(f, 'g', -1, 64)
		}
		return "n" + whole.String()
	}
	return "n" + asInt(v).String()
}

// len is the number of values of a range.
func (s *span) len() int {
	switch {
	case s.step > 0 && s.start < s.stop:
		return (s.stop-s.start-1)/s.step + 1
	case s.step < 0 && s.start > s.stop:
		return (s.start-s.stop-1)/-s.step + 1
	}
	return 0
}

func (v *view) items() []any {
	switch v.kind {
	case "keys":
		return v.of.keys
	case "values":
		return v.of.values
	}
	out := make([]any, len(v.of.keys))
	for i, k := range v.of.keys {
		out[i] = &list{items: []any{k, v.of.values[i]}, tuple: true}
	}
	return out
}

// integer makes a value of an int.
func integer(n int) any { return big.NewInt(int64(n)) }

// fromGo converts a value of the caller.
func (e *evaluator) fromGo(value any, depth int) any {
	e.deep(depth)
	e.spend(1)
	switch v := value.(type) {
	case nil, bool, float64:
		return v
	case string:
		return str{text: pyjson.Text(v), origin: FromData}
	case Fixed:
		return lit(string(v))
	case int:
		return integer(v)
	case int64:
		return big.NewInt(v)
	case json.Number:
		return e.number(string(v))
	case pyjson.Integer:
		return e.number(string(v))
	case []any:
		out := &list{items: make([]any, len(v))}
		for i, item := range v {
			out.items[i] = e.fromGo(item, depth+1)
		}
		return out
	case map[string]any:
		out := newDict()
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out.set(e, e.fromGo(name, depth+1), e.fromGo(v[name], depth+1))
		}
		return out
	case *pyjson.Object:
		return e.fromObject(v, depth)
	}
	e.fail("a value of type %T cannot be rendered", value)
	return nil
}

func (e *evaluator) number(text string) any {
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		e.fail("%q is not a number", text)
	}
	return f
}

// typeName is the name of a value's type in Python.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case *big.Int:
		return "int"
	case float64:
		return "float"
	case str:
		return "str"
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *view:
		return "dict_" + v.kind
	case *span:
		return "range"
	}
	return "object"
}

func (e *evaluator) fromObject(o *pyjson.Object, depth int) any {
	out := newDict()
	if o == nil {
		return nil
	}
	for _, f := range o.Fields {
		out.set(e, e.fromGo(f.Name, depth+1), e.fromGo(f.Value, depth+1))
	}
	return out
}
