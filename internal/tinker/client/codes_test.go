// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestCodesOf walks every category of the wire to its two codes.
func TestCodesOf(t *testing.T) {
	const failing = problem.EndpointFailing
	want := map[tinker.Category]Codes{
		"": {failing, ""}, "canceled": {failing, ""},
		"throttled": {problem.Throttled, Outage}, "paused": {problem.PausedRateLimit, Outage},
		"payment": {problem.PaymentRequired, Outage}, "unreachable": {problem.EndpointUnreachable, Outage},
		"server": {failing, Outage}, "unknown": {failing, Outage}, "timeout": {failing, Outage},
		"conflict": {failing, Outage}, "exists": {failing, Outage}, "promise_lost": {failing, Outage},
		"protocol": {failing, Outage},
		"user":     {failing, Refused}, "too_large": {problem.RequestTooLarge, Refused},
		"not_found": {failing, NotFound}, "unsupported": {failing, Unsupported},
		"unauthorized": {failing, problem.KeyRefused}, "not_tinker": {failing, problem.EndpointNotTinker},
	}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	for _, category := range categories(t) {
		got, known := codes[category]
		if !known {
			t.Errorf("the category %q has no codes", category)
		}
		if !problem.IsKnown(got.Waits) {
			t.Errorf("a call of category %q waits for %q, which is no problem of the table", category, got.Waits)
		}
	}
	if got := CodesOf("of_another_build"); got != (Codes{failing, Outage}) {
		t.Errorf("the codes of an unknown category are %+v, want an endpoint that fails", got)
	}
	paused := Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity}
	if got := codeOf(paused); got != problem.PausedCapacity {
		t.Errorf("a queue that is paused for capacity has the code %s, want %s", got, problem.PausedCapacity)
	}
}

// categories reads the constants of type Category.
func categories(t *testing.T) []tinker.Category {
	t.Helper()
	file, err := parser.ParseFile(gotoken.NewFileSet(), "../category.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []tinker.Category
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Category") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tinker.Category(value))
		return true
	})
	if len(all) < 18 {
		t.Fatalf("category.go has %d categories, want at least 18", len(all))
	}
	return all
}
