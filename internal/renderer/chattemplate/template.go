// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"errors"
	"fmt"
	"time"
)

// Origin says where a character of the output comes from.
type Origin byte

const (
	// FromTemplate marks text of the template.
	FromTemplate Origin = iota
	// FromData marks text of a message, a tool, or another value that the caller gave.
	FromData
)

// Fixed is text that the caller gives and that counts as the template's, such as the name of a role: templates build
// special tokens with it (<|user|>). Never convert text of a message, a tool or another tenant to Fixed.
type Fixed string

// Span is a piece of the output with one origin.
type Span struct {
	Text   string
	Origin Origin
}

// Output is the output of a template. Neighbouring spans differ in their origins.
type Output struct{ Spans []Span }

// Text returns the whole output.
func (o Output) Text() string {
	var all buffer
	for _, s := range o.Spans {
		all.text.WriteString(s.Text)
	}
	return all.text.String()
}

// Kind says why a template failed.
type Kind int

const (
	// Failed means that Python or jinja2 would refuse an operation: a wrong type, an undefined value, a missing argument.
	Failed Kind = iota
	// Raised means that the template called raise_exception: it refuses the conversation.
	Raised
	// Exhausted means that a bound was reached, such as those of Options.
	Exhausted
)

// Error is a failure to render.
type Error struct {
	Kind    Kind
	Line    int
	Message string
}

// Error returns the line and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("rendering chat template: line %d: %s", e.Line, e.Message)
}

// IsRaised reports whether the template itself refused the conversation by raise_exception.
func IsRaised(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == Raised
}

// SyntaxError is a failure to parse. Lines and columns begin at 1; a column counts characters.
type SyntaxError struct {
	Line, Column int
	Message      string
}

// Error returns the position and the message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("parsing chat template: line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Options are the options of a rendering. A bound of 0 means the default.
type Options struct {
	// Date is the date that strftime_now formats.
	Date time.Time
	// Tokens are variables, such as bos_token, whose text counts as the template's.
	Tokens map[string]string
	// MaxSteps bounds the work: a step is an evaluated node, an item, or 32 bytes of text. Defaults to 5,000,000.
	MaxSteps int
	// MaxOutput bounds the bytes of the output and of each string on the way there. Defaults to 16 MiB.
	MaxOutput int
}

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []node }

// Parse reads a template. It returns a *SyntaxError for a template that jinja2 refuses to compile.
func Parse(source string) (t *Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			t, err = nil, failure
		}
	}()
	p := &parser{lex: newLexer(source)}
	p.next()
	return &Template{body: p.template()}, nil
}

// Render renders the variables. Values are nil, booleans, numbers, strings, Fixed, []any, *pyjson.Object (a dict in its
// order) and map[string]any (a dict in the order of its sorted keys). It returns an *Error when the template fails.
func (t *Template) Render(variables map[string]any, options Options) (out Output, err error) {
	if options.MaxSteps == 0 {
		options.MaxSteps = 5_000_000
	}
	if options.MaxOutput == 0 {
		options.MaxOutput = 16 << 20
	}
	e := &evaluator{options: options}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			failure.Line = e.line
			out, err = Output{}, failure
		}
	}()
	top := &scope{names: map[string]any{}}
	for name, value := range variables {
		top.names[name] = e.fromGo(value, 0)
	}
	for name, text := range options.Tokens {
		top.names[name] = lit(text)
	}
	e.out = &buffer{}
	e.run(t.body, &scope{names: map[string]any{}, parent: top})
	return Output{Spans: e.out.spans()}, nil
}
