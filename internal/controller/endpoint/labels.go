// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// FixedLabels are the keys of the labels of runs that the author of a run cannot choose. Budgets select runs by no
// other labels.
type FixedLabels struct {
	// OfNamespace are labels that runs have from their namespaces.
	OfNamespace []string
	// ByPolicy are labels that an admission policy of the platform fixes.
	ByPolicy []string
}

// Unfixed names the labels by which a budget selects runs although the author of a run chooses them; empty if there are
// none. Every operator of a selector counts, since an author can also leave a label out.
func (f FixedLabels) Unfixed(budget v1alpha1.EndpointBudget) string {
	var names []string
	for _, key := range keysOf(budget.LabelSelector) {
		if !slices.Contains(f.OfNamespace, key) && !slices.Contains(f.ByPolicy, key) {
			names = append(names, fmt.Sprintf("%q", key))
		}
	}
	return strings.Join(names, ", ")
}

// refuses returns the problem of a run that a budget of an endpoint may fail to count; nil if the budgets count it.
// Such a run waits, because it would be trained without the budget.
func (f FixedLabels) refuses(found *v1alpha1.TinkerEndpoint, run *v1alpha1.TrainingRun,
	namespace map[string]string) *problem.Problem {
	for _, budget := range found.Spec.Budgets {
		named := fmt.Sprintf("budget %q of TinkerEndpoint %q", budget.Name, found.Name)
		if !isValid(budget.NamespaceSelector) || !isValid(budget.LabelSelector) {
			refused := forbidden("%s has a selector that is not valid", named)
			refused.Repair = "Have the selector corrected."
			return refused
		}
		if budget.LabelSelector == nil || budget.NamespaceSelector != nil && !selects(budget.NamespaceSelector, namespace) {
			continue
		}
		if names := f.Unfixed(budget); names != "" {
			refused := forbidden("%s selects runs by the label %s, which no admission policy fixes", named, names)
			refused.Repair = "Have the label listed in the chart's value endpoints.labels, or the budget select namespaces " +
				"alone."
			return refused
		}
		for _, key := range keysOf(budget.LabelSelector) {
			if !slices.Contains(f.OfNamespace, key) {
				continue
			}
			if refused := differs(run, namespace, named, key); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// differs returns the problem of a run whose label is not that of its namespace: the run is older than the policy that
// fixes the label, or than the label of the namespace, or the policy leaves its namespace out.
func differs(run *v1alpha1.TrainingRun, namespace map[string]string, budget, key string) *problem.Problem {
	has, ok := run.Labels[key]
	want, wanted := namespace[key]
	if ok == wanted && has == want {
		return nil
	}
	is, ought := fmt.Sprintf("has the label %s=%s", key, has), fmt.Sprintf("has %s=%s", key, want)
	change := key + "=" + want
	if !ok {
		is = "lacks the label " + key
	}
	if !wanted {
		ought, change = "lacks it", key+"-"
	}
	refused := forbidden("%s selects by a label that runs have from their namespace, but the run %s, and its namespace "+
		"%q %s", budget, is, run.Namespace, ought)
	refused.Repair = "Give the run the label of its namespace: " + fmt.Sprintf("kubectl label trainingrun %s -n %s "+
		"--overwrite %s", run.Name, run.Namespace, change)
	return refused
}

// keysOf returns the keys that a selector requires something of, sorted.
func keysOf(selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	var keys []string
	for key := range selector.MatchLabels {
		keys = append(keys, key)
	}
	for _, requirement := range selector.MatchExpressions {
		keys = append(keys, requirement.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// isValid reports whether a selector can be evaluated.
func isValid(selector *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil
}
