// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// digestVersion is the first byte of every canonical form. It changes if the form does.
const digestVersion = 1

// These bytes precede a value in the canonical form, so that values of different kinds differ.
const (
	kindObject byte = iota + 1
	kindList
	kindText
	kindInteger
	kindNumber
	kindTrue
	kindFalse
)

// SpecDigest returns the digest of the settings that decide the weights, 64 hex digits. It does not cover the run's
// name and uid, so that equal specs have equal digests.
func SpecDigest(fixed Fixed) (string, error) { return digest("settings", fixed) }

// DefinitionDigest returns the digest of a definition, 64 hex digits.
func DefinitionDigest(d Definition) (string, error) { return digest("definition", d) }

// digest hashes the canonical form of a struct: its fields by their JSON names, sorted. A field that is not set is
// left out: a nil pointer, an empty text, list or map, the number 0, and false. A new field therefore changes no
// digest until it is set. The value of a pointer is always written, so that an explicit 0 differs from no value.
func digest(kind string, v any) (string, error) {
	form, err := appendValue(appendText([]byte{digestVersion}, kind), reflect.ValueOf(v))
	if err != nil {
		return "", fmt.Errorf("digesting: %w", err)
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:]), nil
}

func appendLength(form []byte, n int) []byte {
	return binary.LittleEndian.AppendUint64(form, uint64(n))
}

func appendText(form []byte, text string) []byte {
	return append(appendLength(append(form, kindText), len(text)), text...)
}

func appendValue(form []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Pointer:
		return appendValue(form, v.Elem())
	case reflect.String:
		return appendText(form, v.String()), nil
	case reflect.Bool:
		if v.Bool() {
			return append(form, kindTrue), nil
		}
		return append(form, kindFalse), nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return binary.LittleEndian.AppendUint64(append(form, kindInteger), uint64(v.Int())), nil
	case reflect.Float64:
		// Adding 0 turns -0 into 0.
		return binary.LittleEndian.AppendUint64(append(form, kindNumber), math.Float64bits(v.Float()+0)), nil
	case reflect.Slice:
		return appendList(form, v)
	case reflect.Map:
		members := make([]member, 0, v.Len())
		for entries := v.MapRange(); entries.Next(); {
			members = append(members, member{entries.Key().String(), entries.Value()})
		}
		return appendMembers(form, members)
	case reflect.Struct:
		return appendMembers(form, membersOf(v))
	default:
		return nil, fmt.Errorf("a %s has no canonical form", v.Type())
	}
}

func appendList(form []byte, list reflect.Value) ([]byte, error) {
	if list.Type() == reflect.TypeFor[json.RawMessage]() {
		var compact bytes.Buffer
		if err := json.Compact(&compact, list.Bytes()); err != nil {
			return nil, fmt.Errorf("compacting JSON: %w", err)
		}
		return appendText(form, compact.String()), nil
	}
	form = appendLength(append(form, kindList), list.Len())
	for i := range list.Len() {
		var err error
		if form, err = appendValue(form, list.Index(i)); err != nil {
			return nil, err
		}
	}
	return form, nil
}

// member is a field of an object.
type member struct {
	name  string
	value reflect.Value
}

// membersOf lists the fields of a struct that are set. The fields of an embedded struct count as its own.
func membersOf(v reflect.Value) []member {
	var members []member
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			members = append(members, membersOf(value)...)
		case isSet(value):
			members = append(members, member{cmp.Or(name, field.Name), value})
		}
	}
	return members
}

// isSet reports whether a field has a place in the canonical form.
func isSet(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Float64:
		return v.Float() != 0
	case reflect.Struct:
		return len(membersOf(v)) > 0
	default:
		return !v.IsZero()
	}
}

func appendMembers(form []byte, members []member) ([]byte, error) {
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	form = appendLength(append(form, kindObject), len(members))
	for _, m := range members {
		var err error
		if form, err = appendValue(appendText(form, m.name), m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return form, nil
}
