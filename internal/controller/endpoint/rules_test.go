// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func teamSelector(team string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
}

func platform(changes ...func(*v1alpha1.TinkerEndpoint)) *v1alpha1.TinkerEndpoint {
	e := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "prod"},
		Spec: v1alpha1.TinkerEndpointSpec{Allowed: v1alpha1.AllowedRuns{NamespaceSelector: teamSelector("a")}}}
	for _, change := range changes {
		change(e)
	}
	return e
}

func withBudget(b v1alpha1.EndpointBudget) func(*v1alpha1.TinkerEndpoint) {
	return func(e *v1alpha1.TinkerEndpoint) { e.Spec.Budgets = append(e.Spec.Budgets, b) }
}

func used(name string, since time.Time, tokens int64, usd float64) func(*v1alpha1.TinkerEndpoint) {
	return func(e *v1alpha1.TinkerEndpoint) {
		u := v1alpha1.EndpointBudgetUsage{Name: name, Tokens: &tokens, USD: &usd}
		if !since.IsZero() {
			u.Since = ptr.To(metav1.NewTime(since))
		}
		e.Status.Usage = append(e.Status.Usage, u)
	}
}

// TestUseOf checks who may use an endpoint, and when a budget stops its runs.
func TestUseOf(t *testing.T) {
	november := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	middle := november.Add(13 * 24 * time.Hour)
	month := withBudget(v1alpha1.EndpointBudget{Name: "m", USD: ptr.To(10.0), Period: v1alpha1.BudgetPeriodMonth})
	forever := withBudget(v1alpha1.EndpointBudget{Name: "f", Tokens: ptr.To[int64](100),
		Period: v1alpha1.BudgetPeriodForever})
	deleted := func(e *v1alpha1.TinkerEndpoint) { e.DeletionTimestamp = ptr.To(metav1.Now()) }
	models := func(e *v1alpha1.TinkerEndpoint) { e.Spec.Allowed.Models = []string{"big"} }
	everyone := func(e *v1alpha1.TinkerEndpoint) { e.Spec.Allowed.NamespaceSelector = &metav1.LabelSelector{} }
	for name, tc := range map[string]struct {
		endpoint  *v1alpha1.TinkerEndpoint
		namespace map[string]string
		code      problem.Code
		reached   string
		until     time.Time
	}{
		"allowed":       {endpoint: platform()},
		"missing":       {endpoint: nil, code: problem.EndpointNotFound},
		"being deleted": {endpoint: platform(deleted), code: problem.EndpointNotFound},
		"another namespace": {endpoint: platform(), namespace: map[string]string{"team": "b"},
			code: problem.EndpointForbidden},
		"a namespace without labels": {platform(), map[string]string{}, problem.EndpointForbidden, "", time.Time{}},
		"all namespaces":             {platform(everyone), map[string]string{}, "", "", time.Time{}},
		"another model":              {endpoint: platform(models), code: problem.EndpointForbidden},
		"below the budget":           {endpoint: platform(month, used("m", november, 1000, 9.99))},
		"at the budget": {endpoint: platform(month, used("m", november, 0, 10)), reached: `Budget "m" of TinkerEndpoint ` +
			`"prod" is reached: 10.00 of 10.00 USD are used since 2026-11-01. The run continues from its newest checkpoint ` +
			`on 2026-12-01 UTC, or when the budget is raised.`, until: november.AddDate(0, 1, 0)},
		"used up in the month before": {endpoint: platform(month, used("m", november.AddDate(0, -1, 0), 0, 50))},
		"forever": {endpoint: platform(forever, used("f", time.Time{}, 100, 0)), reached: `Budget "f" of ` +
			`TinkerEndpoint "prod" is reached: 100 of 100 tokens are used. Have the budget raised, and the run continues ` +
			`from its newest checkpoint.`},
		"the budget of other runs": {endpoint: platform(withBudget(v1alpha1.EndpointBudget{Name: "o",
			NamespaceSelector: teamSelector("b"), Tokens: ptr.To[int64](1), Period: v1alpha1.BudgetPeriodForever}),
			used("o", time.Time{}, 5, 0))},
	} {
		run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
		run.Spec.Model.Name, run.Spec.Tinker.EndpointRef = "small", &ref.Endpoint{Name: "prod"}
		if tc.namespace == nil {
			tc.namespace = map[string]string{"team": "a"}
		}
		got := UseOf(run, tc.endpoint, tc.namespace, FixedLabels{}, middle)
		code := problem.Code("")
		if got.Problem != nil {
			code = got.Problem.Code
			if !strings.Contains(got.Problem.Evidence, `"prod"`) {
				t.Errorf("%s: the evidence %q does not name the endpoint", name, got.Problem.Evidence)
			}
		}
		if code != tc.code || got.BudgetReached != tc.reached || !got.Until.Equal(tc.until) {
			t.Errorf("%s: %q, %q until %v, want %q, %q until %v", name, code, got.BudgetReached, got.Until, tc.code,
				tc.reached, tc.until)
		}
	}
}

// TestBudgetsAndWeights checks which budgets count a run, and its weight.
func TestBudgetsAndWeights(t *testing.T) {
	spec := v1alpha1.TinkerEndpointSpec{
		Budgets: []v1alpha1.EndpointBudget{{Name: "all"}, {Name: "a", NamespaceSelector: teamSelector("a")},
			{Name: "b", NamespaceSelector: teamSelector("b")},
			{Name: "label", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"project": "x"}}}},
		Weights: []v1alpha1.NamespaceWeight{{Name: "a", NamespaceSelector: teamSelector("a"), Weight: 3},
			{Name: "rest", NamespaceSelector: &metav1.LabelSelector{}, Weight: 2}},
	}
	for name, tc := range map[string]struct {
		team, project string
		weight        *int32
		budgets       string
		want          int
	}{
		"of team a":           {"a", "", nil, "all a", 3},
		"with a weight":       {"a", "", ptr.To[int32](4), "all a", 12},
		"of another team":     {"c", "", nil, "all", 2},
		"of team b by label":  {"b", "x", nil, "all b label", 2},
		"of no team by label": {"", "x", nil, "all label", 2},
	} {
		run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"project": tc.project}}}
		run.Spec.Tinker.Weight = tc.weight
		namespace := map[string]string{"team": tc.team}
		var names []string
		for _, b := range BudgetsOf(spec, run, namespace) {
			names = append(names, b.Name)
		}
		if got := strings.Join(names, " "); got != tc.budgets || WeightOf(spec, run, namespace) != tc.want {
			t.Errorf("%s: budgets %q and weight %d, want %q and %d", name, got, WeightOf(spec, run, namespace), tc.budgets,
				tc.want)
		}
	}
	if got := WeightOf(v1alpha1.TinkerEndpointSpec{}, &v1alpha1.TrainingRun{}, nil); got != 1 {
		t.Errorf("without weights: %d, want 1", got)
	}
}
