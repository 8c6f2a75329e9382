// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"math/big"
)

// test computes value is name(a).
type test func(e *evaluator, value any, a args) bool

// tests are the tests by name. init fills the map, because the tests filter and test look names up in the tables.
var tests map[string]test

func init() {
	tests = map[string]test{
		"boolean":  is(func(v any) bool { _, ok := v.(bool); return ok }),
		"callable": is(isCallable), "defined": is(func(v any) bool { return !isUndefined(v) }),
		"escaped":  is(func(v any) bool { s, ok := v.(str); return ok && s.markup }),
		"false":    is(func(v any) bool { return v == false }),
		"filter":   named(func(name string) bool { return filters[name] != nil }),
		"float":    is(func(v any) bool { _, ok := v.(float64); return ok }),
		"integer":  is(func(v any) bool { _, ok := v.(*big.Int); return ok }),
		"iterable": is(isIterable), "mapping": is(func(v any) bool { _, ok := v.(*dict); return ok }),
		"none": is(func(v any) bool { return v == nil }), "number": is(isNumber),
		"sequence": is(isSequence), "string": is(func(v any) bool { _, ok := v.(str); return ok }),
		"test":      named(func(name string) bool { return tests[name] != nil }),
		"true":      is(func(v any) bool { return v == true }),
		"undefined": is(isUndefined),
		"even":      divides("2", 0), "odd": divides("2", 1), "divisibleby": divisible,
		"in":    func(e *evaluator, v any, a args) bool { return e.contains(a.bind(e, "in", 1, "seq")[0], v) },
		"lower": cased("islower"), "upper": cased("isupper"), "sameas": same,
	}
	for op, names := range map[string][]string{
		"==": {"eq", "equalto"}, "!=": {"ne"}, ">": {"gt", "greaterthan"}, ">=": {"ge"},
		"<": {"lt", "lessthan"}, "<=": {"le"},
	} {
		for _, name := range append(names, op) {
			tests[name] = func(e *evaluator, v any, a args) bool {
				return e.compare(op, v, a.only(e, name, 1, 1)[0])
			}
		}
	}
}

// is is a test without arguments.
func is(holds func(v any) bool) test {
	return func(e *evaluator, v any, a args) bool {
		a.bind(e, "test", 0)
		return holds(v)
	}
}

// named is a test of whether a name exists.
func named(holds func(name string) bool) test {
	return func(e *evaluator, v any, a args) bool {
		a.bind(e, "test", 0)
		if _, ok := e.hash(v, 0); !ok {
			e.fail("unhashable type: '%s'", typeName(v))
		}
		s, ok := v.(str)
		return ok && holds(s.text)
	}
}

func isUndefined(v any) bool { _, ok := v.(*undefined); return ok }

func isCallable(v any) bool {
	switch v.(type) {
	case *function, *loop, *undefined:
		return true
	}
	return false
}

func isSequence(v any) bool {
	switch v.(type) {
	case str, *list, *dict, *span, *undefined:
		return true
	}
	return false
}

func divides(by string, rest int64) test {
	divisor, _ := new(big.Int).SetString(by, 10)
	return func(e *evaluator, v any, a args) bool {
		a.bind(e, "test", 0)
		return e.equal(e.binary("%", v, divisor), big.NewInt(rest), 0)
	}
}

func divisible(e *evaluator, v any, a args) bool {
	return e.equal(e.binary("%", v, a.bind(e, "divisibleby", 1, "num")[0]), integer(0), 0)
}

func cased(name string) test {
	return func(e *evaluator, v any, a args) bool {
		a.bind(e, name, 0)
		return strMethods[name](e, e.str(v), args{}) == true
	}
}

// same is the identity of Python for unique values, and equality of value and type for others.
func same(e *evaluator, v any, a args) bool {
	other := a.bind(e, "sameas", 1, "other")[0]
	switch v.(type) {
	case *big.Int, str, float64:
		return typeName(v) == typeName(other) && e.equal(v, other, 0)
	}
	return v == other
}
