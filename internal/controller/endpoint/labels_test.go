// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// byLabel is a budget of runs with a label.
func byLabel(selector *metav1.LabelSelector) v1alpha1.EndpointBudget {
	return v1alpha1.EndpointBudget{Name: "trial", LabelSelector: selector, Period: v1alpha1.BudgetPeriodForever}
}

// expression returns a selector with one requirement.
func expression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator,
		Values: values}}}
}

// TestUnfixed checks that Unfixed names the labels of a budget's selector that the author of a run chooses, whatever
// the operator of the selector is.
func TestUnfixed(t *testing.T) {
	const prefixed = "platform.example.com/cost-center"
	fixed := FixedLabels{OfNamespace: []string{"team"}, ByPolicy: []string{prefixed}}
	several := expression("a", metav1.LabelSelectorOpExists)
	several.MatchLabels = map[string]string{"team": "a", "b": "1", "a": "1"}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     string
	}{
		"no selector":                    {nil, ""},
		"all runs":                       {&metav1.LabelSelector{}, ""},
		"a label of the namespace":       {teamSelector("a"), ""},
		"a label with a prefix":          {expression(prefixed, metav1.LabelSelectorOpIn, "1"), ""},
		"the same name, another prefix":  {expression("cost-center", metav1.LabelSelectorOpIn, "1"), `"cost-center"`},
		"a label of the author":          {expression("project", metav1.LabelSelectorOpIn, "x"), `"project"`},
		"runs without a value":           {expression("project", metav1.LabelSelectorOpNotIn, "x"), `"project"`},
		"runs without a label":           {expression("project", metav1.LabelSelectorOpDoesNotExist), `"project"`},
		"a fixed label and two chosen":   {several, `"a", "b"`},
		"a fixed label without a value":  {expression("team", metav1.LabelSelectorOpNotIn, "a"), ""},
		"runs without the fixed label":   {expression("team", metav1.LabelSelectorOpDoesNotExist), ""},
		"a label that differs in a case": {expression("Team", metav1.LabelSelectorOpExists), `"Team"`},
	} {
		if got := fixed.Unfixed(byLabel(tc.selector)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestRunsOfABudgetByLabel checks that a run may not use an endpoint if a budget by label may fail to count the run.
func TestRunsOfABudgetByLabel(t *testing.T) {
	const command = "kubectl label trainingrun r -n ns --overwrite "
	fixed := FixedLabels{OfNamespace: []string{"team"}, ByPolicy: []string{"project"}}
	policy := byLabel(expression("project", metav1.LabelSelectorOpExists))
	chosen := byLabel(expression("sweep", metav1.LabelSelectorOpIn, "x"))
	elsewhere := chosen
	elsewhere.NamespaceSelector = teamSelector("b")
	broken := chosen
	broken.NamespaceSelector, broken.LabelSelector = expression("team", "Foo"), teamSelector("a")
	for name, tc := range map[string]struct {
		budget        v1alpha1.EndpointBudget
		labels        map[string]string
		words, repair string
	}{
		"a label of the author that selects the run": {chosen, map[string]string{"sweep": "x"},
			`budget "trial" of TinkerEndpoint "prod" selects runs by the label "sweep", which no admission policy fixes`,
			"endpoints.labels"},
		"a label of the author that the run lacks": {chosen, nil, `by the label "sweep"`, "endpoints.labels"},
		"a label of the author, other namespaces":  {elsewhere, map[string]string{"sweep": "x"}, "", ""},
		"a policy of the platform":                 {policy, nil, "", ""},
		"the label of the namespace":               {byLabel(teamSelector("a")), map[string]string{"team": "a"}, "", ""},
		"the label of another team": {byLabel(teamSelector("a")), map[string]string{"team": "b"},
			`the run has the label team=b, and its namespace "ns" has team=a`, command + "team=a"},
		"no label, though the namespace has one": {byLabel(teamSelector("a")), nil,
			`the run lacks the label team, and its namespace "ns" has team=a`, command + "team=a"},
		"a selector of runs without the label": {byLabel(expression("team", metav1.LabelSelectorOpDoesNotExist)), nil,
			`the run lacks the label team`, "kubectl label"},
		"a selector of namespaces that is not valid": {broken, map[string]string{"team": "a"},
			`budget "trial" of TinkerEndpoint "prod" has a selector that is not valid`, "corrected"},
		"a selector of runs that is not valid": {byLabel(expression("team", "Foo")), map[string]string{"team": "a"},
			`has a selector that is not valid`, "corrected"},
	} {
		run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Labels: tc.labels}}
		namespace := map[string]string{"team": "a"}
		got := UseOf(run, platform(withBudget(tc.budget)), namespace, fixed, time.Now()).Problem
		if tc.words == "" {
			if got != nil {
				t.Errorf("%s: the run waits: %s", name, got.Sentences())
			}
			continue
		}
		if got == nil || got.Code != problem.EndpointForbidden || !strings.Contains(got.Evidence, tc.words) ||
			!strings.Contains(got.Repair, tc.repair) {
			t.Errorf("%s: the problem is %+v, want %q and the repair %q", name, got, tc.words, tc.repair)
		}
	}

	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r",
		Labels: map[string]string{"team": "x"}}}
	all := platform(withBudget(byLabel(teamSelector("a"))))
	all.Spec.Allowed.NamespaceSelector = &metav1.LabelSelector{}
	got := UseOf(run, all, nil, fixed, time.Now()).Problem
	if got == nil || !strings.Contains(got.Evidence, `has the label team=x, and its namespace "ns" lacks it`) ||
		!strings.Contains(got.Repair, command+"team-") {
		t.Errorf("of a namespace without the label: %+v", got)
	}
}
