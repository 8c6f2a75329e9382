// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder decodes one request. It keeps the first error; after that, its methods return zero values.
type decoder struct {
	dialect   Dialect
	options   Options
	err       *Error
	overruled []string
	ignored   []Field
	sampling  Sampling
	// results are the paths of the IDs of tools' results, by the index of their message.
	results map[int]path
}

// path is the path to a value: a list of names and indexes.
type path struct {
	parent *path
	name   string
	index  int
}

func (p path) at(name string) path { return path{parent: &p, name: name} }

func (p path) item(i int) path { return path{parent: &p, index: i} }

// text returns the path as the dialect writes it: messages[0].content, or messages.0.content.
func (p path) text(dialect Dialect) string {
	if p.parent == nil {
		return ""
	}
	before := p.parent.text(dialect)
	switch {
	case p.name == "" && dialect == OpenAI:
		return before + "[" + strconv.Itoa(p.index) + "]"
	case p.name == "":
		return before + "." + strconv.Itoa(p.index)
	case before == "":
		return p.name
	default:
		return before + "." + p.name
	}
}

// node is a JSON value with its path.
type node struct {
	raw  json.RawMessage
	path path
}

// isNull reports whether the value is null or missing.
func (n node) isNull() bool { return len(n.raw) == 0 || string(n.raw) == "null" }

// object is a JSON object with its path.
type object struct {
	path   path
	fields map[string]json.RawMessage
}

func (o object) get(name string) node { return node{o.fields[name], o.path.at(name)} }

// fail reports an invalid value at a path. Only the first error is kept.
func (d *decoder) fail(p path, format string, args ...any) {
	if d.err == nil {
		d.err = &Error{Kind: InvalidRequest, Param: p.text(d.dialect), Message: fmt.Sprintf(format, args...)}
	}
}

// quote shortens and quotes a text of a request for use in a message.
func quote(text string) string {
	const longest = 64
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return strconv.Quote(text)
}

// open checks the limits, and returns the body as an object.
func (d *decoder) open(body []byte) object {
	limits := d.options.Limits
	var depth, values int
	if len(body) <= limits.Bytes {
		depth, values = measure(body)
	}
	switch {
	case len(body) > limits.Bytes:
		d.err = &Error{
			Kind:    TooLarge,
			Message: fmt.Sprintf("The request has %d bytes. The limit is %d. Send less.", len(body), limits.Bytes),
		}
	case !utf8.Valid(body):
		d.fail(path{}, "The body of the request is not UTF-8.")
	case depth > limits.Depth:
		d.fail(path{}, "The body of the request is nested more than %d times.", limits.Depth)
	case values > limits.Values:
		d.fail(path{}, "The body of the request has more than %d values.", limits.Values)
	}
	if d.err != nil {
		return object{}
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		d.fail(path{}, "The body of the request is not a JSON object.")
		return object{}
	}
	return object{path{}, members(body)}
}

// measure returns how deeply arrays and objects are nested, and roughly the number of values in them. The text need
// not be valid JSON.
func measure(text []byte) (depth, values int) {
	now, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			now++
			values++
			depth = max(depth, now)
		case c == ']' || c == '}':
			now--
		case c == ',':
			values++
		}
	}
	return depth, values
}

// object returns a value that must be an object.
func (d *decoder) object(n node) object {
	if d.err == nil && (n.isNull() || n.raw[0] != '{') {
		d.fail(n.path, "Expected an object, but got %s.", kind(n))
	}
	if d.err != nil {
		return object{path: n.path}
	}
	return object{n.path, members(n.raw)}
}

// list returns the items of a value that must be an array of at most limit items.
func (d *decoder) list(n node, limit int) []node {
	if d.err != nil {
		return nil
	}
	if n.isNull() || n.raw[0] != '[' {
		d.fail(n.path, "Expected an array, but got %s.", kind(n))
		return nil
	}
	raw, ok := elements(n.raw, limit)
	if !ok {
		d.fail(n.path, "The array has more than %d items. Send fewer.", limit)
		return nil
	}
	nodes := make([]node, len(raw))
	for i := range raw {
		nodes[i] = node{raw[i], n.path.item(i)}
	}
	return nodes
}

// string returns the text of a value that must be a string.
func (d *decoder) string(n node) string {
	if d.err == nil && (n.isNull() || n.raw[0] != '"') {
		d.fail(n.path, "Expected a string, but got %s.", kind(n))
	}
	if d.err != nil {
		return ""
	}
	return unquote(n.raw)
}

// required returns the text of a field that must not be empty.
func (d *decoder) required(o object, name string) string {
	field := o.get(name)
	if field.isNull() {
		d.fail(field.path, "The field %s is required.", name)
		return ""
	}
	text := d.string(field)
	if text == "" {
		d.fail(field.path, "The field %s is empty.", name)
	}
	return text
}

// optional returns the text of a field; empty if the field is missing or null.
func (d *decoder) optional(o object, name string) string {
	if field := o.get(name); !field.isNull() {
		return d.string(field)
	}
	return ""
}

// boolean returns the value of a field; false if the field is missing or null.
func (d *decoder) boolean(o object, name string) bool {
	field := o.get(name)
	var value bool
	if d.err == nil && !field.isNull() && json.Unmarshal(field.raw, &value) != nil {
		d.fail(field.path, "Expected a boolean, but got %s.", kind(field))
	}
	return value
}

// integer returns the number of a field, which must be at least the minimum; nil if the field is missing or null.
func (d *decoder) integer(o object, name string, minimum int) *int {
	field := o.get(name)
	if d.err != nil || field.isNull() {
		return nil
	}
	value, err := strconv.ParseInt(string(field.raw), 10, 32)
	if err != nil {
		d.fail(field.path, "Expected an integer, but got %s.", kind(field))
		return nil
	}
	if int(value) < minimum {
		d.fail(field.path, "Expected an integer of at least %d, but got %d.", minimum, value)
		return nil
	}
	number := int(value)
	return &number
}

// jsonObject returns a text that must be a JSON object.
func (d *decoder) jsonObject(text string, p path) string {
	if d.err == nil && !isObject(text) {
		d.fail(p, "Expected the text of a JSON object, but got %s.", quote(text))
	}
	if depth, _ := measure([]byte(text)); d.err == nil && depth > d.options.Limits.Depth {
		d.fail(p, "The JSON text is nested more than %d times.", d.options.Limits.Depth)
	}
	return text
}

// isObject reports whether the text is one JSON object.
func isObject(text string) bool {
	trimmed := bytes.TrimLeft([]byte(text), " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

// kind names the type of a value for a message.
func kind(n node) string {
	if n.isNull() {
		return "null"
	}
	switch n.raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	default:
		return "the number " + cut(string(n.raw))
	}
}

// cut shortens a number of a request for use in a message.
func cut(text string) string {
	const longest = 32
	if len(text) > longest {
		return text[:longest] + "..."
	}
	return text
}

// unsupported handles a field that the codec does not follow. The name identifies it in Request.Ignored.
func (d *decoder) unsupported(name string, p path) {
	if d.options.Unsupported == Refuse {
		if d.err == nil {
			d.fail(p, "The field %s is not supported by this endpoint.", quote(p.text(d.dialect)))
			d.err.Code = codeUnsupported
		}
		return
	}
	for _, field := range d.ignored {
		if field.Name == name {
			return
		}
	}
	d.ignored = append(d.ignored, Field{Name: name, Path: cutPath(p.text(d.dialect))})
}

// cutPath shortens a long path of a field.
func cutPath(text string) string {
	const longest = 256
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return text
}
