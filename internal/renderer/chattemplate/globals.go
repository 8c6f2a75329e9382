// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// globals are the functions that every template sees.
var globals = map[string]any{
	"range": &function{name: "range", call: rangeFunction},
	"dict": &function{name: "dict", call: func(e *evaluator, a args) any { return e.makeDict(a) },
		attr: func(name string) (any, bool) { return &function{name: name, call: fromKeys}, name == "fromkeys" }},
	"namespace": &function{name: "namespace", call: func(e *evaluator, a args) any {
		ns, attrs := &namespace{newDict()}, e.makeDict(a)
		for i, key := range attrs.keys {
			name, ok := key.(str)
			if !ok {
				name = lit("")
			}
			e.attribute(ns, name, nil)
			ns.attrs.set(e, key, attrs.values[i])
		}
		return ns
	}},
	"raise_exception": &function{name: "raise_exception", call: func(e *evaluator, a args) any {
		message := e.str(a.bind(e, "raise_exception", 1, "message")[0])
		panic(&Error{Kind: Raised, Message: message.text})
	}},
	"strftime_now": &function{name: "strftime_now", call: func(e *evaluator, a args) any {
		return lit(strftime(e, e.options.Date, e.text(a.bind(e, "strftime_now", 1, "format")[0]).text))
	}},
	"joiner": &function{name: "joiner", call: joiner},
	"cycler": &function{name: "cycler", call: cycler},
}

// largestRange is the number of values that the sandbox allows.
const largestRange = 100000

func rangeFunction(e *evaluator, a args) any {
	p := a.only(e, "range", 1, 3)
	out := &span{step: 1}
	for i, v := range p {
		n := asInt(v)
		if n == nil {
			e.defined(v)
			e.fail("'%s' object cannot be interpreted as an integer", typeName(v))
		}
		*[]*int{&out.start, &out.stop, &out.step}[i] = int(max(min(clamp(n).Int64(), 1<<40), -1<<40))
	}
	if len(p) == 1 {
		out.start, out.stop = 0, out.start
	}
	if out.step == 0 {
		e.fail("range() arg 3 must not be zero")
	}
	if out.len() > largestRange {
		e.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", largestRange)
	}
	return out
}

// makeDict is dict() of Python.
func (e *evaluator) makeDict(a args) *dict {
	out := newDict()
	if len(a.values) > 1 {
		e.fail("dict expected at most 1 argument")
	}
	if len(a.values) == 1 {
		e.defined(a.values[0])
		if d, ok := a.values[0].(*dict); ok {
			out = e.copyDict(d)
		} else {
			for _, pair := range e.items(a.values[0]) {
				items := e.items(pair)
				if len(items) != 2 {
					e.fail("an element of the sequence for dict has length %d; 2 is required", len(items))
				}
				out.set(e, items[0], items[1])
			}
		}
	}
	for i, name := range a.names {
		out.set(e, lit(name), a.named[i])
	}
	return out
}

func fromKeys(e *evaluator, a args) any {
	p := a.only(e, "fromkeys", 1, 2)
	out := newDict()
	value := any(nil)
	if len(p) == 2 {
		value = p[1]
	}
	for _, key := range e.items(p[0]) {
		out.set(e, key, value)
	}
	return out
}

func joiner(e *evaluator, a args) any {
	p := a.bind(e, "joiner", 0, "sep")
	sep := p[0]
	if _, ok := sep.(unset); ok {
		sep = lit(", ")
	}
	used := false
	return &function{name: "joiner", call: func(e *evaluator, a args) any {
		a.only(e, "joiner", 0, 0)
		if !used {
			used = true
			return lit("")
		}
		return sep
	}}
}

func cycler(e *evaluator, a args) any {
	if len(a.values) == 0 || len(a.names) > 0 {
		e.fail("at least one item has to be provided")
	}
	at := 0
	step := func(name string, by func() any) (any, bool) {
		return &function{name: name, call: func(e *evaluator, a args) any {
			a.only(e, name, 0, 0)
			return by()
		}}, true
	}
	return &function{name: "cycler", call: func(e *evaluator, _ args) any {
		e.fail("'Cycler' object is not callable")
		return nil
	}, attr: func(name string) (any, bool) {
		switch name {
		case "current":
			return a.values[at], true
		case "next":
			return step(name, func() any {
				out := a.values[at]
				at = (at + 1) % len(a.values)
				return out
			})
		case "reset":
			return step(name, func() any {
				at = 0
				return nil
			})
		}
		return nil, false
	}}
}

// dates are the directives of strftime that have a layout of Go.
var dates = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'd': "02", 'H': "15", 'I': "03", 'm': "01",
	'M': "04", 'S': "05", 'p': "PM", 'y': "06", 'Y': "2006", 'j': "002", 'D': "01/02/06", 'F': "2006-01-02",
	'T': "15:04:05", 'R': "15:04", 'x': "01/02/06", 'X': "15:04:05", 'c': "Mon Jan _2 15:04:05 2006", 'e': "_2",
	'r': "03:04:05 PM", 'f': "000000",
}

// strftime formats a date, without a zone, as the C library does in its own locale.
func strftime(e *evaluator, date time.Time, format string) string {
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		e.bytes(out.Len())
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		flag := byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		out.WriteString(flagged(directive(date, format[i]), flag))
	}
	return out.String()
}

func flagged(text string, flag byte) string {
	trimmed := strings.TrimLeft(text, "0 ")
	if trimmed == "" || trimmed[0] < '0' || trimmed[0] > '9' {
		trimmed = text[min(len(text), max(0, len(text)-1)):] // 00 is 0
	}
	switch flag {
	case '-':
		if text != "" && (text[0] == '0' || text[0] == ' ') {
			return trimmed
		}
	case '_':
		if text != "" && text[0] == '0' {
			return fmt.Sprintf("%*s", len(text), trimmed)
		}
	case '^':
		return strings.ToUpper(text)
	}
	return text
}

func directive(date time.Time, c byte) string {
	if layout, ok := dates[c]; ok {
		if c == 'f' {
			return fmt.Sprintf("%06d", date.Nanosecond()/1000)
		}
		return date.Format(layout)
	}
	year, week := date.ISOWeek()
	day := int(date.Weekday())
	switch c {
	case 'w':
		return strconv.Itoa(day)
	case 'u':
		return strconv.Itoa((day+6)%7 + 1)
	case 'U':
		return fmt.Sprintf("%02d", (date.YearDay()+6-day)/7)
	case 'W':
		return fmt.Sprintf("%02d", (date.YearDay()+6-(day+6)%7)/7)
	case 'G':
		return strconv.Itoa(year)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'C':
		return fmt.Sprintf("%02d", date.Year()/100)
	case 'k':
		return fmt.Sprintf("%2d", date.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (date.Hour()+11)%12+1)
	}
	if text, ok := map[byte]string{'n': "\n", 't': "\t", '%': "%", 'Z': "", 'z': ""}[c]; ok {
		return text
	}
	return "%" + string(c)
}
