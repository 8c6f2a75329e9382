// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Use has the permissions and budgets of a run at its TinkerEndpoint. The zero value means that the run has a key of
// its own.
type Use struct {
	// Problem keeps the run from using the endpoint; nil if it may use it.
	Problem *problem.Problem
	// Prices are the prices of the endpoint by model; nil if it has none of its own.
	Prices map[string]spending.Price
	// BudgetReached says which budget of the endpoint is reached; empty if none is.
	BudgetReached string
	// Until is the time at which the budget's next period begins; zero for a budget without end.
	Until time.Time
	// Check has the broker's findings for the model of the run; nil if the broker has not checked within the last day.
	Check *v1alpha1.EndpointCapabilities
}

// UseOf returns the use of an endpoint by a run at a time. The endpoint is nil if it does not exist. namespace are the
// labels of the run's namespace.
func UseOf(run *v1alpha1.TrainingRun, found *v1alpha1.TinkerEndpoint, namespace map[string]string, fixed FixedLabels,
	now time.Time) Use {
	if found == nil || found.DeletionTimestamp != nil {
		return Use{Problem: &problem.Problem{Code: problem.EndpointNotFound,
			Evidence: fmt.Sprintf("%q", run.Spec.Tinker.EndpointRef.Name)}}
	}
	if refused := Refusal(found, run, namespace, fixed); refused != nil {
		return Use{Problem: refused}
	}
	for _, budget := range BudgetsOf(found.Spec, run, namespace) {
		reached, until := reached(found, budget, now)
		if reached != "" {
			return Use{BudgetReached: reached, Until: until}
		}
	}
	return Use{}
}

// Succession says how another release comes to serve an endpoint.
const Succession = "If that release is gone, another one takes over within three minutes. If that release was of a " +
	"version that did not renew its claim (status.renewTime), delete the TinkerEndpoint and create it again."

// ServedElsewhere returns the namespace of another manager, which serves an endpoint; empty if no other does. namespace
// is the namespace of the manager that asks.
func ServedElsewhere(found *v1alpha1.TinkerEndpoint, namespace string) string {
	if found.Status.Namespace == namespace {
		return ""
	}
	return found.Status.Namespace
}

// Refusal returns the problem of a run that an endpoint does not allow; nil if the endpoint allows the run.
func Refusal(found *v1alpha1.TinkerEndpoint, run *v1alpha1.TrainingRun, namespace map[string]string,
	fixed FixedLabels) *problem.Problem {
	allowed := found.Spec.Allowed
	switch {
	case !selects(allowed.NamespaceSelector, namespace):
		return forbidden("TinkerEndpoint %q selects namespaces with %s, and namespace %q has other labels", found.Name,
			metav1.FormatLabelSelector(allowed.NamespaceSelector), run.Namespace)
	case len(allowed.Models) > 0 && !slices.Contains(allowed.Models, run.Spec.Model.Name):
		return forbidden("TinkerEndpoint %q allows the models %s, and not %q", found.Name,
			strings.Join(allowed.Models, ", "), run.Spec.Model.Name)
	}
	return fixed.refuses(found, run, namespace)
}

func forbidden(format string, arguments ...any) *problem.Problem {
	return &problem.Problem{Code: problem.EndpointForbidden, Evidence: fmt.Sprintf(format, arguments...)}
}

// BudgetsOf returns the budgets that count the usage of a run, in the order of the spec.
func BudgetsOf(spec v1alpha1.TinkerEndpointSpec, run *v1alpha1.TrainingRun,
	namespace map[string]string) []v1alpha1.EndpointBudget {
	var all []v1alpha1.EndpointBudget
	for _, budget := range spec.Budgets {
		everywhere, everything := budget.NamespaceSelector == nil, budget.LabelSelector == nil
		if (everywhere || selects(budget.NamespaceSelector, namespace)) &&
			(everything || selects(budget.LabelSelector, run.Labels)) {
			all = append(all, budget)
		}
	}
	return all
}

// WeightOf returns the share of a run beside a run whose weight is 1.
func WeightOf(spec v1alpha1.TinkerEndpointSpec, run *v1alpha1.TrainingRun, namespace map[string]string) int {
	weight := int(ptr.Deref(run.Spec.Tinker.Weight, 1))
	for _, entry := range spec.Weights {
		if selects(entry.NamespaceSelector, namespace) {
			return weight * int(entry.Weight)
		}
	}
	return weight
}

// PeriodStart returns when the period of a budget began; the zero time for a budget without end.
func PeriodStart(period v1alpha1.BudgetPeriod, now time.Time) time.Time {
	if period != v1alpha1.BudgetPeriodMonth {
		return time.Time{}
	}
	now = now.UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// UsageOf returns the usage of a budget in its current period. A usage of another period counts as 0.
func UsageOf(found *v1alpha1.TinkerEndpoint, budget v1alpha1.EndpointBudget,
	now time.Time) (tokens int64, usd float64) {
	for _, used := range found.Status.Usage {
		if used.Name != budget.Name {
			continue
		}
		start := PeriodStart(budget.Period, now)
		if !start.IsZero() && (used.Since == nil || !PeriodStart(budget.Period, used.Since.Time).Equal(start)) {
			return 0, 0
		}
		return ptr.Deref(used.Tokens, 0), ptr.Deref(used.USD, 0)
	}
	return 0, 0
}

// reached describes a budget whose limit is reached, and returns the time at which its next period begins; empty if the
// limit is not reached.
func reached(found *v1alpha1.TinkerEndpoint, budget v1alpha1.EndpointBudget, now time.Time) (string, time.Time) {
	tokens, usd := UsageOf(found, budget, now)
	var used string
	switch {
	case budget.USD != nil && usd >= *budget.USD:
		used = fmt.Sprintf("%.2f of %.2f USD are used", usd, *budget.USD)
	case budget.Tokens != nil && tokens >= *budget.Tokens:
		used = fmt.Sprintf("%d of %d tokens are used", tokens, *budget.Tokens)
	default:
		return "", time.Time{}
	}
	text := fmt.Sprintf("Budget %q of TinkerEndpoint %q is reached: %s", budget.Name, found.Name, used)
	start := PeriodStart(budget.Period, now)
	if start.IsZero() {
		return text + ". Have the budget raised, and the run continues from its newest checkpoint.", time.Time{}
	}
	until := start.AddDate(0, 1, 0)
	return text + fmt.Sprintf(" since %s. The run continues from its newest checkpoint on %s UTC, or when the budget is "+
		"raised.", start.Format(time.DateOnly), until.Format(time.DateOnly)), until
}

// selects reports whether a selector selects labels. An invalid or nil selector selects nothing.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}
