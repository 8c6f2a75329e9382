// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

func TestBudgetsWarnOnceBeforeTheyAreReached(t *testing.T) {
	used := func(tokens int64, usd float64) *v1alpha1.TinkerEndpoint {
		return newEndpoint(func(e *v1alpha1.TinkerEndpoint) {
			e.Spec.Budgets = []v1alpha1.EndpointBudget{
				{Name: "team", USD: new(10.0), Tokens: new(int64(1000)), Period: v1alpha1.BudgetPeriodForever}}
			e.Status.Usage = []v1alpha1.EndpointBudgetUsage{{Name: "team", Tokens: &tokens, USD: &usd}}
		})
	}
	for name, row := range map[string]struct {
		before, after *v1alpha1.TinkerEndpoint
		want          string
	}{
		"little":                {used(0, 0), used(799, 7.99), ""},
		"the first report":      {newEndpoint(), used(0, 9), "BudgetNearlyReached"},
		"80% of the dollars":    {used(0, 7.99), used(0, 8), "BudgetNearlyReached"},
		"80% of the tokens":     {used(799, 0), used(800, 0), "BudgetNearlyReached"},
		"more":                  {used(800, 8), used(900, 9), ""},
		"all":                   {used(900, 9), used(900, 10), "BudgetReached"},
		"all at once":           {used(0, 0), used(1000, 0), "BudgetReached"},
		"beyond":                {used(1000, 0), used(1001, 0), ""},
		"a budget that was cut": {used(1000, 10), used(0, 0), ""},
	} {
		var got []string
		for _, event := range budgetEvents(row.before, row.after, now) {
			got = append(got, event.Reason)
			if !strings.Contains(event.Note, `"team"`) {
				t.Errorf("%s: the note %q does not name the budget", name, event.Note)
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: events %q, want %q", name, got, row.want)
		}
	}
}
