// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func codeOf(err error) Code {
	var wrong *Error
	if errors.As(err, &wrong) {
		return wrong.Code
	}
	return ""
}

func TestDecodeBoundsLines(t *testing.T) {
	deep := func(n int) string {
		return `{"type":"call","value":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	cases := map[string]struct {
		line string
		want Code
	}{
		"a message":                   {line: `{"type":"call","id":1}`},
		"unknown fields":              {line: `{"type":"call","id":1,"later":{"a":[1]}}`},
		"spaces":                      {line: "  {\"type\":\"call\"}\r"},
		"brackets in a text":          {line: `{"type":"call","method":"` + strings.Repeat("[", 100) + `"}`},
		"an escaped quote":            {line: `{"type":"call","method":"\"` + strings.Repeat("{", 100) + `"}`},
		"as deep as the bound":        {line: deep(9)},
		"deeper":                      {line: deep(10), want: CodeTooDeep},
		"deeper, and no JSON":         {line: strings.Repeat("[", 1000), want: CodeTooDeep},
		"nothing":                     {line: ``, want: CodeBadLine},
		"a number":                    {line: `1`, want: CodeBadLine},
		"null":                        {line: `null`, want: CodeBadLine},
		"an array":                    {line: `[{"type":"call"}]`, want: CodeBadLine},
		"two messages":                {line: `{"type":"call"}{"type":"call"}`, want: CodeBadLine},
		"half a message":              {line: `{"type":"call"`, want: CodeBadLine},
		"NaN":                         {line: `{"type":"call","value":NaN}`, want: CodeBadLine},
		"an id that is no integer":    {line: `{"type":"call","id":1.5}`, want: CodeBadLine},
		"an id that is a text":        {line: `{"type":"call","id":"1"}`, want: CodeBadLine},
		"an id beyond 64 bits":        {line: `{"type":"call","id":99999999999999999999}`, want: CodeBadLine},
		"bytes that are no text":      {line: "{\"type\":\"call\",\"method\":\"\xff\"}", want: CodeBadLine},
		"no type":                     {line: `{"id":1}`, want: CodeUnknownType},
		"a type of another direction": {line: `{"type":"ready"}`, want: CodeUnknownType},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tc.line), Lines{Bytes: 1000, Depth: 10}, FromCaller)
			if got := codeOf(err); got != tc.want || tc.want == "" && err != nil {
				t.Errorf("got %v, want the code %q", err, tc.want)
			}
		})
	}
}

func TestReaderBoundsLines(t *testing.T) {
	message := func(n int) string { return `{"type":"call","method":"` + strings.Repeat("x", n-27) + "\"}\n" }
	const bound = 100_000
	cases := map[string]struct {
		input string
		reads int // messages before the error
		want  error
		code  Code
	}{
		"lines":                     {input: message(40) + message(bound) + message(40), reads: 3, want: io.EOF},
		"a line of one byte more":   {input: message(40) + message(bound+1) + message(40), reads: 1, code: CodeLineTooLong},
		"a line without an end":     {input: message(40) + strings.Repeat("x", 300_000), reads: 1, code: CodeLineTooLong},
		"an end within a line":      {input: message(40) + `{"type":`, reads: 1, want: io.ErrUnexpectedEOF},
		"an end within a long line": {input: message(40) + strings.Repeat("x", 80_000), reads: 1, want: io.ErrUnexpectedEOF},
		"nothing":                   {want: io.EOF},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for kind, in := range map[string]io.Reader{
				"whole": strings.NewReader(tc.input), "halves": iotest.HalfReader(strings.NewReader(tc.input)),
			} {
				reader := NewReader(in, Lines{Bytes: bound, Depth: 10}, FromCaller)
				reads := 0
				_, err := reader.Read()
				for ; err == nil; reads++ {
					_, err = reader.Read()
				}
				if reads != tc.reads || codeOf(err) != tc.code || tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("%s: got %d messages, then %v; want %d, then %v %s", kind, reads, err, tc.reads, tc.want, tc.code)
				}
			}
		})
	}
}

func TestEncodeKeepsTheLengthOfTexts(t *testing.T) {
	text := `{"type":"call","value":"` + strings.Repeat("<&>", 1000) + `"}`
	m, err := Decode([]byte(text), DefaultLines, FromCaller)
	if err != nil {
		t.Fatal(err)
	}
	line, err := Encode(m)
	if err != nil || string(line) != text+"\n" {
		t.Errorf("got %d bytes and %v, want the %d of the line that was read", len(line), err, len(text)+1)
	}
}

func TestSanitizeBoundsWhatAProgramSays(t *testing.T) {
	long := strings.Repeat("é", maxText)
	got := (&Error{
		Code: CodeDied, Message: long, Field: "x", Exception: long, Line: &Line{File: long, Number: 3, Text: long},
		Question: &Error{Code: Code(long), Message: long, Field: "x"},
	}).Sanitize()
	short := long[:maxText]
	want := &Error{
		Code: CodeException, Message: short, Exception: short, Line: &Line{File: short, Number: 3, Text: short},
		Question: &Error{Code: Code(short), Message: short},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&Error{Code: CodeNotFinite}).Sanitize().Code; got != CodeNotFinite {
		t.Errorf("got %s, want the program's own code", got)
	}
	if got := (*Error)(nil).Sanitize().Code; got != CodeException {
		t.Errorf("no error: got %s, want %s", got, CodeException)
	}
	if got := cut("x" + long); len(got) != maxText-1 {
		t.Errorf("a cut within a character: got %d bytes, want %d", len(got), maxText-1)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	ok := func() Message { return Message{Type: TypeCall, ID: 1, Program: "p", Method: "m"} }
	cases := map[string]struct {
		change func(*Message)
		want   string
	}{
		"nothing":             {func(*Message) {}, ""},
		"no id":               {func(m *Message) { m.ID = 0 }, "id"},
		"no program":          {func(m *Message) { m.Program = "" }, "program"},
		"a long name":         {func(m *Message) { m.Session = strings.Repeat("x", 129) }, "session"},
		"no method":           {func(m *Message) { m.Method = "" }, "method"},
		"no session":          {func(m *Message) { m.Type = TypeOpen }, "session"},
		"no spec":             {func(m *Message) { m.Type = TypeStart }, "spec"},
		"a large seed":        {func(m *Message) { m.Seed = MaxSeed + 1 }, "seed"},
		"alone and a session": {func(m *Message) { m.Alone, m.Session = true, "s" }, "alone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := ok()
			tc.change(&m)
			got := ""
			if err := ValidateRequest(&m); err != nil {
				got = err.Field
			}
			if got != tc.want {
				t.Errorf("got the field %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"result","id":1,"value":{"reward":1}}`))
	f.Add([]byte(`{"type":"error","id":1,"error":{"code":"exception","line":{"number":3}}}`))
	f.Add([]byte(`[[[`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Decode(line, Lines{Bytes: 1 << 16, Depth: 8}, FromProgram)
		if err != nil {
			if codeOf(err) == "" {
				t.Errorf("got %v, want an error of the protocol", err)
			}
			return
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		other, err := Decode(again, Lines{Bytes: 1 << 20, Depth: 9}, FromProgram)
		if err != nil {
			t.Fatalf("the encoded message cannot be decoded: %v", err)
		}
		if diff := cmp.Diff(m, other); diff != "" {
			t.Logf("%s", diff) // raw values may be written in another way
		}
	})
}
