// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pyjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSONWrittenAgain compares texts with the results of json.dumps(json.loads(text)) in Python 3.11.
func TestJSONWrittenAgain(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"spaces are the writer's own":  {text: "{\"a\":[1,2],\n\t\"b\" : {}}", want: `{"a": [1, 2], "b": {}}`},
		"what is not ASCII is escaped": {text: `"Sã 東 😀 ` + "\x7f" + `"`, want: `"S\u00e3 \u6771 \ud83d\ude00 \u007f"`},
		"escapes are read": {text: `"\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\"`,
			want: `"\u00e9\ud83d\ude00/\b\f\n\r\t\"\\"`},
		"a lone surrogate stays": {text: `"\ud83d x \uDE00\ud83d\ud83d\ude00"`,
			want: `"\ud83d x \ude00\ud83d\ud83d\ude00"`},
		"whole numbers keep their digits": {text: `[12345678901234567890, -0, 0]`, want: `[12345678901234567890, 0, 0]`},
		"others have the fewest": {
			text: `[1e16, 1e15, 1E-7, 0.00001, 0.0001, -0.0, 1.50, 123456789.123456789, 5e-324, 1e22]`,
			want: `[1e+16, 1000000000000000.0, 1e-07, 1e-05, 0.0001, -0.0, 1.5, 123456789.12345679, 5e-324, 1e+22]`},
		"what is too big is infinite": {text: `[1e400, -1e400, NaN, Infinity, -Infinity]`,
			want: `[Infinity, -Infinity, NaN, Infinity, -Infinity]`},
		"the last of two values counts":    {text: `{"k": 1, "j": 0, "k": 2}`, want: `{"k": 2, "j": 0}`},
		"words":                            {text: `[null, true, false]`, want: `[null, true, false]`},
		"a name may be empty":              {text: `{"": ""}`, want: `{"": ""}`},
		"a value may stand by itself":      {text: " 3\r\n", want: `3`},
		"U+007F and beyond need no escape": {text: "\"\u0080\"", want: `"\u0080"`},
		"the deepest nesting that is taken": {text: strings.Repeat("[", deepest) + strings.Repeat("]", deepest),
			want: strings.Repeat("[", deepest) + strings.Repeat("]", deepest)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			value, err := Parse(tc.text)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if diff := cmp.Diff(tc.want, JSON(value)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	cases := map[string]string{
		"nothing": "", "a comma too many": `{"a": 1,}`, "a comma too many in a list": `[1,]`, "single quotes": `{'a': 1}`,
		"a leading zero": "007", "a sign alone": "-", "a point without digits": "1.", "an exponent without digits": "1e",
		"a plus":                "+1",
		"a string that is open": `"a`, "a control character": "\"a\tb\"", "an invalid escape": `"\x"`,
		"an escape cut": `"\u12"`, "an escape without digits": `"\u12g4"`,
		"two values": `{} {}`, "a byte order mark": "\ufeff{}", "white space of Unicode": "\u00a0{}",
		"a name that is a number": `{1: 2}`, "no colon": `{"a" 1}`,
		"an object that is open": `{"a": 1`, "a list that is open": `[1`, "a word cut": "nul",
		"too deep":          strings.Repeat("[", 5000),
		"a number too long": strings.Repeat("9", longest+1),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if value, err := Parse(text); err == nil {
				t.Errorf("Parse(%q) = %v, want an error", text, value)
			}
		})
	}
}

func TestStyles(t *testing.T) {
	value, err := Parse(`{"b": [1, "é"], "a": {"d": null, "c": "\ud83d"}}`)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		style Style
		want  string
	}{
		"compact": {style: Style{Compact: true}, want: `{"b":[1,"\u00e9"],"a":{"d":null,"c":"\ud83d"}}`},
		"sorted":  {style: Style{Sorted: true}, want: `{"a": {"c": "\ud83d", "d": null}, "b": [1, "\u00e9"]}`},
		"Unicode": {style: Style{Unicode: true}, want: `{"b": [1, "é"], "a": {"d": null, "c": "` + "\uFFFD" + `"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.style.JSON(value)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStr compares texts with the results of str(json.loads(text)) in Python 3.11.
func TestStr(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"text is itself":           {text: `"it's \"é\""`, want: `it's "é"`},
		"a lone surrogate is lost": {text: `"a\ud83d"`, want: "a\uFFFD"},
		"words have a capital":     {text: `[true, false, null]`, want: `[True, False, None]`},
		"numbers":                  {text: `[1, 1.0, 1e16, NaN, -1e400]`, want: `[1, 1.0, 1e+16, nan, -inf]`},
		"quotes as they are needed": {text: `["a", "it's", "\"it's\"", "\\", "\n\u0001"]`,
			want: `['a', "it's", '"it\'s"', '\\', '\n\x01']`},
		"an object":  {text: `{"a": {"b": "c"}}`, want: `{'a': {'b': 'c'}}`},
		"true alone": {text: `true`, want: "True"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			value, err := Parse(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := Str(value); got != tc.want {
				t.Errorf("Str = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestObjectKeepsItsOrder(t *testing.T) {
	o := &Object{}
	for _, name := range []string{"b", "a", "b"} {
		o.Set(name, name)
	}
	if diff := cmp.Diff([]Field{{Name: "b", Value: "b"}, {Name: "a", Value: "a"}}, o.Fields); diff != "" {
		t.Errorf("Fields (-want +got):\n%s", diff)
	}
	if v, ok := o.Get("c"); ok {
		t.Errorf("Get of a name that is not there = %v", v)
	}
}

func TestSpaceAndCapitals(t *testing.T) {
	cases := map[string]struct{ got, want string }{
		"white space of Unicode goes":      {got: Strip("\u00a0\u3000 a\u2003\n"), want: "a"},
		"so do the separators of ASCII":    {got: Strip("\x1c\x1d\x1e\x1fa\x1c"), want: "a"},
		"U+200B and U+FEFF stay":           {got: Strip("\u200ba\ufeff"), want: "\u200ba\ufeff"},
		"the left side only":               {got: StripLeft(" a "), want: "a "},
		"the right side only":              {got: StripRight(" a "), want: " a"},
		"the first is large, others small": {got: Capitalize("pLAYER oNE"), want: "Player one"},
		"nothing has no first":             {got: Capitalize(""), want: ""},
		"a digraph has a title case":       {got: Capitalize("ǆungla"), want: "ǅungla"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%q, want %q", tc.got, tc.want)
			}
		})
	}
}

// FuzzParse checks that a parsed value can be written and parsed again to the same value.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"a": [1, 2.5, "\ud83d\u00e9"], "b": null}`, `[NaN, -Infinity, 1e400, -0]`, `"\ud83d`,
		"[[[[", `{"a":1,"a":{}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := Parse(text)
		if err != nil {
			return
		}
		written := JSON(value)
		again, err := Parse(written)
		if err != nil || JSON(again) != written {
			t.Errorf("%q is written as %q and read as %v, %v", text, written, again, err)
		}
		Str(value)
		Style{Compact: true, Sorted: true, Unicode: true}.JSON(value)
	})
}
