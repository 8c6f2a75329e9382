// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/renderer/chattemplate"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// date is the date that the recorder pins.
var date = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// variables reads a JSON object as the data of a template.
func variables(t testing.TB, text string) map[string]any {
	t.Helper()
	value, err := pyjson.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, f := range pyjson.ObjectOf(value).Fields {
		out[f.Name] = f.Value
	}
	return out
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// recordedCase is a template with jinja2's output.
type recordedCase struct {
	Source          string
	Text            string
	Refused, Raised bool
}

func recordedCases(t testing.TB) []recordedCase {
	t.Helper()
	var out []recordedCase
	for line := range strings.Lines(read(t, "cases.jsonl")) {
		var c recordedCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func render(source string, data map[string]any, options chattemplate.Options) (chattemplate.Output, error) {
	parsed, err := chattemplate.Parse(source)
	if err != nil {
		return chattemplate.Output{}, err
	}
	return parsed.Render(data, options)
}

func TestRecordedCases(t *testing.T) {
	data := variables(t, read(t, "variables.json"))
	for _, c := range recordedCases(t) {
		out, err := render(c.Source, data, chattemplate.Options{Date: date})
		switch {
		case c.Refused && err == nil:
			t.Errorf("%q: got %q, want a refusal", c.Source, out.Text())
		case c.Refused && chattemplate.IsRaised(err) != c.Raised:
			t.Errorf("%q: got %v, want raised %t", c.Source, err, c.Raised)
		case !c.Refused && err != nil:
			t.Errorf("%q: got %v, want %q", c.Source, err, c.Text)
		case !c.Refused && out.Text() != c.Text:
			t.Errorf("%q (-want +got):\n%s", c.Source, cmp.Diff(c.Text, out.Text()))
		}
	}
}

// marked shows data in guillemets.
func marked(out chattemplate.Output) string {
	var text strings.Builder
	for _, s := range out.Spans {
		if s.Origin == chattemplate.FromData {
			text.WriteString("«" + s.Text + "»")
		} else {
			text.WriteString(s.Text)
		}
	}
	return text.String()
}

func TestOrigins(t *testing.T) {
	data := variables(t, `{"c": " <|e|> ", "d": {"k": "v"}, "l": ["a", "b"], "n": 3, "s": "a<t>b<t>c"}`)
	for name, c := range map[string]struct{ source, want string }{
		"data between text": {`<|s|>{{ c }}<|e|>`, `<|s|>« <|e|> »<|e|>`},
		"concatenation":     {`{{ '<|' + c ~ '|>' }}`, `<|« <|e|> »|>`},
		"trim":              {`[{{ c|trim }}]`, `[«<|e|>»]`},
		"strip and slice":   {`{{ ('x' + c.strip())[:3] }}`, `x«<|»`},
		"upper":             {`{{ ('x' ~ l[0])|upper }}`, `X«A»`},
		"replace":           {`{{ s.replace('<t>', '<T>') }}`, `«a»<T>«b»<T>«c»`},
		"replace by data":   {`{{ 'x-y'|replace('-', l[0]) }}`, `x«a»y`},
		"join":              {`{{ l|join('<s>') }}`, `«a»<s>«b»`},
		"split":             {`{{ ('<a>' ~ s).split('<t>')[0] }}`, `<a>«a»`},
		"reverse":           {`{{ ('xy' ~ l[0])|reverse }}`, `«a»yx`},
		"repetition":        {`{{ ('x' ~ l[0]) * 2 }}`, `x«a»x«a»`},
		"json":              {`{{ d|tojson }}{{ ['x', 1]|tojson }}`, `«{"k": "v"}["»x«", »1«]»`},
		"printed list":      {`{{ l }}`, `«['a', 'b']»`},
		"number":            {`<|image_{{ n }}|>`, `<|image_3|>`},
		"format":            {`{{ '<%s>' % l[0] }}{{ '<{}>'.format(l[1]) }}`, `<«a»><«b»>`},
		"format of data":    {`{{ s.format(1) }}`, `«a<t>b<t>c»`},
		"block set":         {`{% set x %}<{{ l[0] }}>{% endset %}{{ x }}`, `<«a»>`},
		"macro":             {`{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(l[0]) }}`, `<«a»>`},
		"character":         {`{% for x in 'x' ~ l[0] %}({{ x }}){% endfor %}`, `(x)(«a»)`},
		"key":               {`{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}`, `«k»=«v»`},
		"escape":            {`{{ ('<' ~ s)|e }}`, `&lt;«a&lt;t&gt;b&lt;t&gt;c»`},
		"indent":            {`{{ 'a\nb'|indent(2) }}`, "a\n  b"},
		"token":             {`{{ bos_token }}{{ l[0] }}`, `<s>«a»`},
		"default":           {`{{ zz|default('x') }}{{ zz|default(l[0]) }}`, `x«a»`},
		"number as text":    {`{{ '<%c' % 62 }}`, `<«>»`},
		"comparison":        {`{{ 'a' == l[0] }}`, `True`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := render(c.source, data, chattemplate.Options{Tokens: map[string]string{"bos_token": "<s>"}})
			if got := marked(out); err != nil || got != c.want {
				t.Errorf("%s: got %s, %v; want %s", c.source, got, err, c.want)
			}
		})
	}
}

func TestFixedTextCountsAsTheTemplates(t *testing.T) {
	data := map[string]any{"role": chattemplate.Fixed("user"), "name": "user"}
	out, err := render(`<|{{ role }}|><|{{ name }}|>{{ role == name }}`, data, chattemplate.Options{})
	if got, want := marked(out), `<|user|><|«user»|>True`; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// TestOriginsOfRecordedCases checks that spans are never empty, and that neighbours have different origins.
func TestOriginsOfRecordedCases(t *testing.T) {
	data := variables(t, read(t, "variables.json"))
	for _, c := range recordedCases(t) {
		out, _ := render(c.Source, data, chattemplate.Options{Date: date})
		for i, s := range out.Spans {
			if s.Text == "" || i > 0 && s.Origin == out.Spans[i-1].Origin {
				t.Errorf("%q: got the spans %+v", c.Source, out.Spans)
			}
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for name, c := range map[string]struct {
		source       string
		line, column int
	}{
		"expression":  {"a\nb {{ 1 + }}", 2, 10},
		"tag":         {"{% if x %}\n  {% foo %}", 2, 6},
		"filter":      {"{{ x|\n nosuch }}", 2, 2},
		"character":   {"é {{ ? }}", 1, 6},
		"not closed":  {"\n {% for x in y", 2, 2},
		"no end":      {"{% if x %}", 1, 11},
		"end of loop": {"{% break %}", 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chattemplate.Parse(c.source)
			var failed *chattemplate.SyntaxError
			if !errors.As(err, &failed) || failed.Line != c.line || failed.Column != c.column {
				t.Errorf("got %v, want line %d, column %d", err, c.line, c.column)
			}
		})
	}
}

func TestErrorsHaveTheirLine(t *testing.T) {
	_, err := render("a\n\n{{ raise_exception('no') }}", nil, chattemplate.Options{})
	var failed *chattemplate.Error
	if !errors.As(err, &failed) || failed.Line != 3 || failed.Kind != chattemplate.Raised || failed.Message != "no" {
		t.Errorf("got %v, want the message no of line 3", err)
	}
}

func TestBounds(t *testing.T) {
	double := `{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = `
	for name, source := range map[string]string{
		"nested loops":      `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`,
		"output":            `{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}`,
		"repetition":        `{{ 'x' * 10 ** 12 }}`,
		"list":              `{{ [1] * 10 ** 12 }}`,
		"concatenation":     double + `ns.x ~ ns.x %}{% endfor %}`,
		"addition":          double + `ns.x + ns.x %}{% endfor %}`,
		"join":              double + `ns.x|list|join(ns.x) %}{% endfor %}`,
		"replace":           double + `ns.x.replace('', ns.x) %}{% endfor %}`,
		"json":              double + `[ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}`,
		"text of lists":     double + `[ns.x, ns.x] %}{% endfor %}{{ ns.x }}`,
		"equality":          double + `[ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x|list }}`,
		"namespace in one":  `{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}`,
		"recursion":         `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"default recursion": `{% macro f(a=f()) %}{% endmacro %}{% macro f(a=f()) %}{% endmacro %}{{ f() }}`,
		"caller recursion":  `{% macro f() %}{% call f() %}{% endcall %}{{ caller }}{% endmacro %}{{ f() }}`,
		"chain":             `{{ 1` + strings.Repeat(" + 1", 50_000) + ` }}`,
		"attributes":        `{{ x` + strings.Repeat(".real", 50_000) + ` }}`,
		"power":             `{{ 9 ** (9 ** 9) }}`,
		"large integers": double +
			`1 %}{% endfor %}{% set ns.x = 3 %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}`,
		"width":        `{{ '%999999999d' % 1 }}`,
		"format width": `{{ '{:999999999}'.format(1) }}`,
		"center":       `{{ 'x'.center(10 ** 10) }}`,
		"fill":         `{{ [1]|batch(10 ** 12, 'x')|list }}`,
		"slices":       `{{ [1]|slice(10 ** 12)|list }}`,
		"captures":     `{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}{% endfor %}`,
	} {
		t.Run(name, func(t *testing.T) {
			out, err := render(source, nil, chattemplate.Options{MaxSteps: 300_000, MaxOutput: 1 << 20})
			var failed *chattemplate.Error
			if !errors.As(err, &failed) || failed.Kind != chattemplate.Exhausted {
				t.Errorf("got %d bytes, %v; want a bound", len(out.Text()), err)
			}
		})
	}
}

func TestDeepSourcesAreRefused(t *testing.T) {
	for _, open := range []string{"(", "[", "{1:", "not ", "-", "{% if 1 %}", "x(", "x[", "1 if "} {
		for _, begin := range []string{"", "{{ "} {
			if _, err := chattemplate.Parse(begin + strings.Repeat(open, 20_000)); err == nil && begin != "" {
				t.Errorf("%s: got no error", open)
			}
		}
	}
}

// FuzzRender checks that no template panics, and that none goes beyond its bounds.
func FuzzRender(f *testing.F) {
	data := variables(f, read(f, "variables.json"))
	for _, c := range recordedCases(f) {
		f.Add(c.Source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		const most = 1 << 16
		out, err := render(source, data, chattemplate.Options{Date: date, MaxSteps: 100_000, MaxOutput: most})
		var syntax *chattemplate.SyntaxError
		var failed *chattemplate.Error
		if err != nil && !errors.As(err, &syntax) && !errors.As(err, &failed) {
			t.Errorf("got the error %v of type %T", err, err)
		}
		if len(out.Text()) > most {
			t.Errorf("got %d bytes", len(out.Text()))
		}
	})
}
