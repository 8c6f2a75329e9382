// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// filter computes value|name(a).
type filter func(e *evaluator, value any, a args) any

// filters are the filters by name. init fills the map, because some filters call others.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs": absolute, "attr": attrFilter, "batch": batch, "capitalize": method("capitalize"), "center": center,
		"count": lengthFilter, "d": defaultFilter, "default": defaultFilter, "dictsort": dictSort, "e": escapeFilter,
		"escape": escapeFilter, "first": first, "float": toFloat, "forceescape": forceEscape, "format": formatFilter,
		"groupby": groupBy, "indent": indent, "int": toInt, "items": itemsFilter, "join": join, "last": last,
		"length": lengthFilter, "list": toList, "lower": method("lower"), "map": mapFilter, "max": extreme(1),
		"min": extreme(-1), "reject": choose(false, false), "rejectattr": choose(false, true),
		"replace": replaceFilter, "reverse": reverse, "round": round, "safe": safe, "select": choose(true, false),
		"selectattr": choose(true, true), "slice": sliceFilter, "sort": sortFilter, "string": stringFilter,
		"sum": sum, "title": title, "tojson": toJSON, "trim": trim, "truncate": truncate, "unique": unique,
		"upper": method("upper"), "urlencode": urlEncode, "wordcount": wordCount,
	}
}

// method is a filter that is a method of the text of the value.
func method(name string) filter {
	return func(e *evaluator, value any, a args) any {
		a.bind(e, name, 0)
		return strMethods[name](e, e.str(value), args{})
	}
}

// isUnset reports whether a parameter was not given or is none.
func isUnset(v any) bool {
	_, ok := v.(unset)
	return ok || v == nil
}

// wholeOr returns a parameter that is an integer, or its default.
func (e *evaluator) wholeOr(v any, usual int) int {
	if _, ok := v.(unset); ok {
		return usual
	}
	e.defined(v)
	return e.small(v)
}

func absolute(e *evaluator, v any, a args) any {
	a.bind(e, "abs", 0)
	e.defined(v)
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	n := asInt(v)
	if n == nil {
		e.fail("bad operand type for abs(): '%s'", typeName(v))
	}
	return new(big.Int).Abs(n)
}

func attrFilter(e *evaluator, v any, a args) any {
	name := e.str(a.bind(e, "attr", 1, "name")[0])
	if _, ok := v.(*undefined); ok {
		e.defined(v)
	}
	if out, ok := e.python(v, name.text); ok {
		return out
	}
	return &undefined{"there is no attribute " + name.text}
}

func center(e *evaluator, v any, a args) any {
	width := e.wholeOr(a.bind(e, "center", 0, "width")[0], 80)
	return strMethods["center"](e, e.str(v), args{values: []any{integer(width)}})
}

func lengthFilter(e *evaluator, v any, a args) any {
	a.bind(e, "length", 0)
	return integer(e.length(v))
}

func defaultFilter(e *evaluator, v any, a args) any {
	p := a.bind(e, "default", 0, "default_value", "boolean")
	_, missing := v.(*undefined)
	if !missing && (!given(e, p[1]) || e.truth(v)) {
		return v
	}
	if _, ok := p[0].(unset); ok {
		return lit("")
	}
	return p[0]
}

func escapeFilter(e *evaluator, v any, a args) any {
	a.bind(e, "escape", 0)
	return escape(e.str(v))
}

func forceEscape(e *evaluator, v any, a args) any {
	a.bind(e, "forceescape", 0)
	return escape(e.str(v).plain())
}

func safe(e *evaluator, v any, a args) any {
	a.bind(e, "safe", 0)
	out := e.str(v)
	out.markup = true
	return out
}

func stringFilter(e *evaluator, v any, a args) any {
	a.bind(e, "string", 0)
	return e.str(v)
}

func formatFilter(e *evaluator, v any, a args) any {
	if len(a.values) > 0 && len(a.names) > 0 {
		e.fail("format takes positional or keyword arguments, not both")
	}
	if len(a.names) == 0 {
		return e.percent(e.str(v), &list{items: a.values, tuple: true})
	}
	d := newDict()
	for i, name := range a.names {
		d.set(e, lit(name), a.named[i])
	}
	return e.percent(e.str(v), d)
}

func toFloat(e *evaluator, v any, a args) any {
	p := a.bind(e, "float", 0, "default")
	e.defined(v)
	if f, ok := e.parseFloat(v); ok {
		return f
	}
	if _, ok := p[0].(unset); ok {
		return 0.0
	}
	return p[0]
}

// parseFloat is float() of Python.
func (e *evaluator) parseFloat(v any) (float64, bool) {
	if isNumber(v) {
		return e.asFloat(v), true
	}
	s, ok := v.(str)
	if !ok {
		return 0, false
	}
	text := strings.ToLower(pyjson.Strip(s.text))
	if strings.ContainsAny(text, "xp") && !strings.Contains(text, "inf") || badUnderscores(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func toInt(e *evaluator, v any, a args) any {
	p := a.bind(e, "int", 0, "default", "base")
	e.defined(v)
	usual := p[0]
	if _, ok := usual.(unset); ok {
		usual = integer(0)
	}
	if n := asInt(v); n != nil {
		return n
	}
	if s, ok := v.(str); ok {
		if n := parseInt(s.text, e.wholeOr(p[1], 10)); n != nil {
			return n
		}
	}
	f, ok := e.parseFloat(v)
	if _, float := v.(float64); float && math.IsInf(f, 0) {
		e.fail("cannot convert float infinity to integer")
	}
	if n := toBig(math.Trunc(f)); ok && n != nil {
		return n
	}
	return usual
}

// badUnderscores reports whether underscores stand where Python allows none.
func badUnderscores(text string) bool {
	return strings.Contains(text, "__") || strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_")
}

// parseInt is int() of Python for a text.
func parseInt(text string, base int) *big.Int {
	text = pyjson.Strip(text)
	digits := strings.ToLower(strings.TrimLeft(text, "+-"))
	if base == 1 || base < 0 || base > 36 || len(text)-len(digits) > 1 || len(digits) > 4300 {
		return nil
	}
	digits, base = prefixed(digits, base)
	if base == 0 {
		if base = 10; strings.HasPrefix(digits, "0") && strings.Trim(digits, "0_") != "" {
			return nil
		}
	}
	if badUnderscores(digits) || strings.ContainsAny(digits, "+-") {
		return nil
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok {
		return nil
	}
	if strings.HasPrefix(text, "-") {
		n.Neg(n)
	}
	return n
}

// prefixed removes a prefix that names the base.
func prefixed(digits string, base int) (string, int) {
	for prefix, of := range map[string]int{"0x": 16, "0o": 8, "0b": 2} {
		if strings.HasPrefix(digits, prefix) && (base == of || base == 0) {
			return strings.TrimPrefix(digits[2:], "_"), of
		}
	}
	return digits, base
}

func replaceFilter(e *evaluator, v any, a args) any {
	p := a.bind(e, "replace", 2, "old", "new", "count")
	values := []any{e.str(p[0]).plain(), e.str(p[1]).plain()}
	if !isUnset(p[2]) {
		values = append(values, p[2])
	}
	return strMethods["replace"](e, e.str(v).plain(), args{values: values})
}

func trim(e *evaluator, v any, a args) any {
	p := a.bind(e, "trim", 0, "chars")
	if isUnset(p[0]) {
		return strMethods["strip"](e, e.str(v), args{})
	}
	return strMethods["strip"](e, e.str(v), args{values: p})
}

func title(e *evaluator, v any, a args) any {
	a.bind(e, "title", 0)
	begin := true
	s := e.str(v)
	out := s.mapRunes(func(_ int, r rune) string {
		defer func() { begin = strings.ContainsRune("-({[<", r) || pyjson.IsSpace(r) }()
		if begin {
			return upperRune(r)
		}
		return lowerRune(r)
	})
	return out.plain()
}

func indent(e *evaluator, v any, a args) any {
	p := a.bind(e, "indent", 0, "width", "first", "blank")
	by, ok := p[0].(str)
	if !ok {
		by = lit(strings.Repeat(" ", min(max(e.wholeOr(p[0], 4), 0), 10000)))
	}
	s, ok := v.(str)
	if !ok {
		e.fail("indent needs a string, not '%s'", typeName(v))
	}
	lines := concat(s, lit("\n")).lines(false)
	var out buffer
	for i, line := range lines {
		e.bytes(len(by.text))
		e.room(&out)
		if i > 0 {
			out.write("\n", FromTemplate)
		}
		if i == 0 && given(e, p[1]) || i > 0 && (line.text != "" || given(e, p[2])) {
			out.add(by)
		}
		out.add(line)
	}
	return s.like(out.str())
}

func truncate(e *evaluator, v any, a args) any {
	p := a.bind(e, "truncate", 0, "length", "killwords", "end", "leeway")
	size := e.wholeOr(p[0], 255)
	end := lit("...")
	if _, ok := p[2].(unset); !ok {
		end = e.text(p[2])
	}
	leeway := 5
	if !isUnset(p[3]) {
		leeway = e.small(p[3])
	}
	if size < end.count() || leeway < 0 {
		e.fail("truncate needs a length that its end fits in")
	}
	if e.length(v) <= size+leeway {
		return v
	}
	s := e.text(v)
	cut := s.slice(0, size-end.count(), 1)
	if !given(e, p[1]) {
		if i := strings.LastIndexByte(cut.text, ' '); i >= 0 {
			cut = cut.cut(0, i)
		}
	}
	return concat(cut, end)
}

func wordCount(e *evaluator, v any, a args) any {
	a.bind(e, "wordcount", 0)
	return integer(len(strings.FieldsFunc(e.str(v).text, func(r rune) bool { return !isWord(r) })))
}

func urlEncode(e *evaluator, v any, a args) any {
	a.bind(e, "urlencode", 0)
	if _, ok := v.(str); ok || !isIterable(v) {
		return quoteURL(e.str(v), "/")
	}
	if d, ok := v.(*dict); ok {
		v = &view{d, "items"}
	}
	var out buffer
	for i, item := range e.items(v) {
		pair := e.items(item)
		if len(pair) != 2 {
			e.fail("urlencode needs pairs")
		}
		if i > 0 {
			out.write("&", FromTemplate)
		}
		out.add(quoteURL(e.str(pair[0]), ""))
		out.write("=", FromTemplate)
		out.add(quoteURL(e.str(pair[1]), ""))
	}
	return out.str()
}

func quoteURL(s str, keep string) str {
	var out buffer
	for i := range len(s.text) {
		c := s.text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_.-~"+keep, c) >= 0:
			out.write(string(c), s.at(i))
		case c == ' ' && keep == "":
			out.write("+", s.at(i))
		default:
			out.write("%"+strings.ToUpper(strconv.FormatUint(uint64(c)+0x100, 16)[1:]), s.at(i))
		}
	}
	return out.str()
}

func round(e *evaluator, v any, a args) any {
	p := a.bind(e, "round", 0, "precision", "method")
	digits, way := e.wholeOr(p[0], 0), "common"
	if _, ok := p[1].(unset); !ok {
		way = e.str(p[1]).text
	}
	e.defined(v)
	if !isNumber(v) || way != "common" && way != "ceil" && way != "floor" || digits > 300 || digits < -300 {
		e.fail("round needs a number, and the method common, ceil or floor")
	}
	if way == "common" {
		return e.rounded(v, digits)
	}
	factor := e.arithmetic("**", integer(10), integer(digits))
	f := e.asFloat(e.arithmetic("*", v, factor))
	if way == "ceil" {
		f = math.Ceil(f)
	} else {
		f = math.Floor(f)
	}
	n := toBig(f)
	if n == nil {
		e.fail("cannot convert float to integer")
	}
	return e.arithmetic("/", n, factor)
}

// rounded is round() of Python, half to even.
func (e *evaluator) rounded(v any, digits int) any {
	f, isFloat := v.(float64)
	if isFloat && digits >= 0 {
		out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
		return out
	}
	if isFloat {
		unit := math.Pow(10, float64(-digits))
		return math.RoundToEven(f/unit) * unit
	}
	n := asInt(v)
	if digits >= 0 {
		return n
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	low := e.whole("//", n, unit).(*big.Int)
	twice := new(big.Int).Mul(new(big.Int).Sub(n, new(big.Int).Mul(low, unit)), big.NewInt(2))
	if c := twice.Cmp(unit); c > 0 || c == 0 && low.Bit(0) == 1 {
		low = new(big.Int).Add(low, big.NewInt(1))
	}
	return new(big.Int).Mul(low, unit)
}
