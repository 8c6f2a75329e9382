// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// TestColumnsOfAnExpression compares the columns that each row needs. A column that is read only under a condition is
// not among them.
func TestColumnsOfAnExpression(t *testing.T) {
	for text, want := range map[string]string{
		"reply.lastNumber() == double(row.total) ? 1.0 : 0.0":         "total",
		"reply.text == row['a b'] && row.c == 1.0":                    "a b",
		"has(row.x) ? double(row.x) : 0.0":                            "",
		"row.kind == 'a' ? double(row.a) : double(row.b)":             "kind",
		"row.?x.orValue(0.0)":                                         "",
		"row.words.exists(w, reply.text.contains(w) && row.y == 1.0)": "words",
		"math.greatest([double(row.a), double(row.b.c)])":             "a b",
		"reply.text.contains(row.a)":                                  "a",
		"1.0":                                                         "",
	} {
		e, err := NewExpression(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := strings.Join(e.columns, " "); got != want {
			t.Errorf("%s reads %q, want %q", text, got, want)
		}
	}
}

func TestExpressionChecksRows(t *testing.T) {
	e, err := NewExpression("reply.lastNumber() == double(row.totl) ? 1.0 : 0.0")
	if err != nil {
		t.Fatal(err)
	}
	err = e.CheckRow(dataset.Row{Fields: map[string]any{"total": json.Number("2"), "question": "1+1"}})
	var fault *environment.Fault
	if !errors.As(err, &fault) || !fault.Permanent || !strings.Contains(err.Error(), `reads row.totl, and the row has no `+
		`column "totl"; its columns are `) || !strings.Contains(err.Error(), "did you mean row.total?") {
		t.Errorf("a row without the column: %v", err)
	}
	if err := e.CheckRow(dataset.Row{Fields: map[string]any{"totl": nil}}); err != nil {
		t.Errorf("a row with the column: %v", err)
	}
}

// TestExpressionSaysWhatToWrite compiles mistakes of people who know Python, and checks the repairs in the errors.
func TestExpressionSaysWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"reply.text == '1' ? 1.0 : 0":              "write 0.0 for 0",
		"1.0 - size(reply.text) / 100.0":           "double(VALUE) for a value such as size(TEXT)",
		"reply.lastNumbr() == 1.0":                 "did you mean lastNumber?",
		"reply.text.startswith('a')":               "did you mean startsWith?",
		"repl.text == 'a'":                         "did you mean reply?",
		"math.greatest(reply.lastNumber(), 'a')":   "line 1, column 35",
		"reply.text == 'a' ? 'yes' : size('abcd')": "no matching overload",
	} {
		if _, err := NewExpression(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		} else if want == "no matching overload" && strings.Contains(err.Error(), "do not mix") {
			t.Errorf("%s has the wrong hint: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"math.greatest(0.0, reply.lastNumber())":   "size(reply.numbers()) > 0 ? VALUE : 0.0",
		"row.kind == 'b' ? double(row.totl) : 0.0": "did you mean row.total?",
	} {
		e, err := NewExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Grade(t.Context(), dataset.Row{Fields: map[string]any{"kind": "b", "total": json.Number("2")}},
			environment.Reply{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
