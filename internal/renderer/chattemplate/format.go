// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// verb is one conversion of the % operator.
var verb = regexp.MustCompile(`^%(?:\(([^()]*)\))?([-+ 0#]*)(\*|[0-9]*)(?:\.(\*|[0-9]*))?[hlL]?(.)`)

// supply supplies the values for a format, in their order.
type supply struct {
	values any
	tuple  *list // values, if they are a tuple
	taken  int
}

func (s *supply) next(e *evaluator) any {
	s.taken++
	switch {
	case s.tuple != nil && s.taken <= len(s.tuple.items):
		return s.tuple.items[s.taken-1]
	case s.tuple == nil && s.taken == 1:
		return s.values
	}
	e.fail("not enough arguments for format string")
	return nil
}

// end fails if values are left.
func (s *supply) end(e *evaluator) {
	_, isText := s.values.(str)
	left := s.taken == 0 && (isText || !isSequence(s.values))
	if s.tuple != nil {
		left = s.taken < len(s.tuple.items)
	}
	if left {
		e.fail("not all arguments converted during string formatting")
	}
}

// percent is text % values.
func (e *evaluator) percent(s str, values any) any {
	var out buffer
	from := &supply{values: values}
	if l, ok := values.(*list); ok && l.tuple {
		from.tuple = l
	}
	for i := 0; i < len(s.text); {
		j := strings.IndexByte(s.text[i:], '%')
		if j < 0 {
			out.add(s.cut(i, len(s.text)))
			break
		}
		out.add(s.cut(i, i+j))
		i += j
		m := verb.FindStringSubmatch(s.text[i:])
		if m == nil {
			e.fail("incomplete format")
		}
		if m[5] == "%" {
			out.write("%", s.at(i))
		} else {
			text := e.conversion(m, from)
			e.bytes(len(text.text))
			e.room(&out)
			out.add(text)
		}
		i += len(m[0])
	}
	from.end(e)
	return s.like(out.str())
}

// conversion formats one value.
func (e *evaluator) conversion(m []string, from *supply) str {
	f := e.spec(m, func() any { return from.next(e) })
	if !strings.HasPrefix(m[0], "%(") {
		return e.percented(f, from.next(e))
	}
	from.taken++
	return e.percented(f, e.named(from.values, m[1]))
}

func (e *evaluator) named(values any, name string) any {
	d, ok := values.(*dict)
	if !ok {
		e.fail("format requires a mapping")
	}
	v, found := d.name(name)
	if !found {
		e.fail("the format has no key %s", name)
	}
	return v
}

// spec is the format of one value.
type spec struct {
	fill             string
	align, sign      byte
	alternate, comma bool
	width, precision int
	kind             byte
}

// limitedWidth reads a width or precision.
func (e *evaluator) limitedWidth(text string, usual int) int {
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > e.options.MaxOutput {
		e.bytes(e.options.MaxOutput + 1)
	}
	return n
}

func (e *evaluator) spec(m []string, next func() any) spec {
	out := spec{fill: " ", align: '>', precision: -1, kind: m[5][0], width: 0}
	read := func(text string, usual int) int {
		if text == "*" {
			return e.small(next())
		}
		return e.limitedWidth(text, usual)
	}
	out.width = read(m[3], 0)
	if strings.Contains(m[0][:len(m[0])-1], ".") && !strings.HasPrefix(m[0], "%(") || m[4] != "" {
		out.precision = read(m[4], 0)
	}
	for _, flag := range []byte(m[2]) {
		switch flag {
		case '+':
			out.sign = '+'
		case ' ':
			if out.sign == 0 {
				out.sign = ' '
			}
		case '#':
			out.alternate = true
		case '0':
			if strings.IndexByte("diuxXofFeEgG", out.kind) >= 0 && out.align == '>' {
				out.fill, out.align = "0", '='
			}
		}
	}
	if strings.Contains(m[2], "-") || out.width < 0 {
		out.fill, out.align = " ", '<'
		out.width = max(out.width, -out.width)
	}
	return out
}

// percented formats one value of the % operator.
func (e *evaluator) percented(f spec, v any) str {
	switch f.kind {
	case 's', 'r', 'a':
		text := e.str(v)
		if f.kind != 's' {
			text = e.repr(v)
		}
		if f.precision >= 0 {
			text = text.slice(0, min(f.precision, text.count()), 1)
		}
		return e.aligned(f, text)
	case 'c':
		if n := asInt(v); n != nil {
			// The number may come from a message, which must not spell a special token with it.
			v = str{text: string(rune(e.small(n))), origin: FromData}
		}
		if text := e.text(v); text.count() == 1 {
			return e.aligned(f, text)
		}
		e.fail("%%c requires int or char")
	case 'd', 'i', 'u':
		e.defined(v)
		if x, ok := v.(float64); ok {
			n := toBig(float64(int64(x)))
			v = n
		}
		f.kind = 'd'
	}
	if !isNumber(v) {
		e.defined(v)
		e.fail("%%%c format: a number is required, not %s", f.kind, typeName(v))
	}
	return e.numberText(f, v)
}

func (e *evaluator) aligned(f spec, text str) str {
	align := f.align
	if align == '^' {
		align = 'c'
	}
	return e.padded(text, f.width, align, lit(f.fill))
}

// numberText formats a number.
func (e *evaluator) numberText(f spec, v any) str {
	f.precision = min(f.precision, 1000)
	var text string
	negative := false
	if strings.IndexByte("dxXob", f.kind) >= 0 {
		n := asInt(v)
		if n == nil {
			e.fail("%%%c format: an integer is required, not %s", f.kind, typeName(v))
		}
		negative = n.Sign() < 0
		text = digits(f, new(big.Int).Abs(n))
	} else {
		x := e.asFloat(v)
		text = real(f, x)
		negative = strings.HasPrefix(text, "-")
		text = strings.TrimPrefix(text, "-")
	}
	if f.comma {
		text = grouped(text)
	}
	sign := ""
	switch {
	case negative:
		sign = "-"
	case f.sign != 0 && f.sign != '-':
		sign = string(f.sign)
	}
	if f.align == '=' {
		f.width -= len(sign)
		f.align = '>'
		return concat(lit(sign), e.aligned(f, lit(text)))
	}
	return e.aligned(f, lit(sign+text))
}

func digits(f spec, n *big.Int) string {
	base := map[byte]int{'d': 10, 'x': 16, 'X': 16, 'o': 8, 'b': 2}[f.kind]
	text := n.Text(base)
	for len(text) < f.precision {
		text = "0" + text
	}
	if f.alternate && base != 10 {
		text = "0" + string(f.kind|0x20) + text
	}
	if f.kind == 'X' {
		text = strings.ToUpper(text)
	}
	return text
}

func real(f spec, x float64) string {
	precision := f.precision
	if precision < 0 {
		precision = 6
	}
	switch f.kind {
	case '%':
		return strconv.FormatFloat(x*100, 'f', precision, 64) + "%"
	case 'g', 'G':
		return strings.ReplaceAll(fmt.Sprintf("%."+strconv.Itoa(max(precision, 1))+string(f.kind), x), "+Inf", "inf")
	case 'F':
		f.kind = 'f'
	}
	text := strconv.FormatFloat(x, f.kind, precision, 64)
	return strings.NewReplacer("+Inf", "inf", "-Inf", "-inf", "NaN", "nan").Replace(text)
}

// grouped puts commas between thousands.
func grouped(text string) string {
	end := strings.IndexAny(text, ".e%")
	if end < 0 {
		end = len(text)
	}
	for i := end - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
