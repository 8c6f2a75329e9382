// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/nearest"
)

// columnsOf returns the columns that an expression reads of every row, for any reply. Columns that only one branch of a
// condition reads, or one side of && and ||, are not among them, since a row need not have them.
func columnsOf(e ast.Expr) []string {
	found := map[string]bool{}
	readColumns(e, found)
	return slices.Sorted(maps.Keys(found))
}

func readColumns(e ast.Expr, found map[string]bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		if isRow(s.Operand()) && !s.IsTestOnly() {
			found[s.FieldName()] = true
		}
		readColumns(s.Operand(), found)
	case ast.CallKind:
		c := e.AsCall()
		arguments := c.Args()
		switch c.FunctionName() {
		case operators.Conditional, operators.LogicalAnd, operators.LogicalOr:
			arguments = arguments[:1]
		case operators.OptSelect, operators.OptIndex:
			arguments = nil
		case operators.Index:
			if name, ok := constant(arguments[1]); ok && isRow(arguments[0]) {
				found[name] = true
			}
		}
		if c.IsMemberFunction() {
			readColumns(c.Target(), found)
		}
		for _, argument := range arguments {
			readColumns(argument, found)
		}
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			readColumns(element, found)
		}
	case ast.ComprehensionKind: // a macro such as all or exists, which may run over an empty list
		readColumns(e.AsComprehension().IterRange(), found)
	}
}

func isRow(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "row" }

// constant returns the value of a string literal of an expression.
func constant(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// CheckRow implements RowChecker.
func (e *Expression) CheckRow(row dataset.Row) error {
	columns := row.AllFields()
	for _, name := range e.columns {
		if _, ok := columns[name]; !ok {
			return rowFault("%s", noColumn(name, columns))
		}
	}
	return nil
}

var noKey = regexp.MustCompile(`no such key: (\S+)`)

// explainEvaluation adds the repair to the error of an expression that cannot be evaluated for a row.
func explainEvaluation(err error, columns map[string]any) error {
	missing := noKey.FindStringSubmatch(err.Error())
	switch {
	case missing != nil && columns[missing[1]] == nil:
		return fmt.Errorf("%s (%w)", noColumn(missing[1], columns), err)
	case strings.Contains(err.Error(), "NaN"):
		return fmt.Errorf("evaluating reward.expression: %w: lastNumber() of a reply without a number is NaN; guard it, as "+
			"in 'size(reply.numbers()) > 0 ? VALUE : 0.0'", err)
	}
	return fmt.Errorf("evaluating reward.expression: %w", err)
}

// noColumn describes a column that a row lacks, and suggests a column that may be meant.
func noColumn(name string, columns map[string]any) string {
	known := slices.Sorted(maps.Keys(columns))
	repair := "correct the name, or guard it with has(row." + name + ")"
	if near := nearest.Name(name, known); near != "" {
		repair = "did you mean row." + near + "?"
	}
	return fmt.Sprintf("reward.expression reads row.%s, and the row has no column %q; its columns are %s: %s", name, name,
		strings.Join(known, ", "), repair)
}

var (
	undeclared = regexp.MustCompile(`undeclared reference to '([^']+)'`)
	noOverload = regexp.MustCompile(`no matching overload for '.*' applied to '(.*)'`)
)

// hint proposes a correction of an expression that the compiler of CEL refuses; "" if none is known.
func hint(message string) string {
	if found := undeclared.FindStringSubmatch(message); found != nil {
		if near := nearest.Name(found[1], knownNames()); near != "" {
			return ": did you mean " + near + "?"
		}
	}
	found := noOverload.FindStringSubmatch(message)
	if found != nil && strings.Contains(found[1], "double") && strings.Contains(found[1], "int") {
		return ": an int and a double do not mix: write 0.0 for 0, and double(VALUE) for a value such as size(TEXT)"
	}
	return ""
}

// knownNames returns the names of variables and functions that expressions use.
func knownNames() []string {
	names := []string{"row", "reply", "episode", mathEquals, "size", "contains", "startsWith", "endsWith", "matches",
		"double", "int", "string", "bool", "has", "exists", "filter", "charAt", "indexOf", "lastIndexOf", "math.abs",
		"math.greatest", "math.least", "math.round", "math.ceil", "math.floor", "sets.contains", "sets.intersects"}
	for _, f := range textFunctions {
		names = append(names, f.name)
	}
	return append(names, extensions...)
}
