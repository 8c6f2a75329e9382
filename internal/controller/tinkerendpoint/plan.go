// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// startPatience is the time that a broker has to start, or to take over from another, before a person has to act.
const startPatience = time.Minute

// lookInterval is the time between two looks at a broker's report and its pods.
const lookInterval = 10 * time.Second

// maxSettings bounds the encoded settings: a ConfigMap has at most 1 MiB.
const maxSettings = 900 << 10

// plan has the actions on an endpoint.
type plan struct {
	// settings are the broker's settings, encoded.
	settings       []byte
	ready, stalled status.Condition
	runs           int32
	usage          []v1alpha1.EndpointBudgetUsage
	// capabilities are the supported features of the server, and checked is the condition about them.
	capabilities []v1alpha1.EndpointCapabilities
	checked      status.Condition
}

// makePlan decides the settings of the broker, and the status. known are the prices of the operator, and fixed the
// labels by which budgets may select runs.
func makePlan(of *v1alpha1.TinkerEndpoint, seen observed, known map[string]spending.Price, fixed rules.FixedLabels,
	now time.Time) (plan, error) {
	settings := settingsOf(of, seen, known, fixed)
	encoded, err := encodeSettings(settings, seen.runs)
	if err != nil {
		return plan{}, err
	}
	p := plan{settings: encoded, usage: usageOf(of, seen.report)}
	for _, r := range seen.runs {
		if rules.Refusal(of, r.run, r.namespace, fixed) == nil && !status.RunFinished(r.run) {
			p.runs++
		}
	}
	p.ready, p.stalled = conditionsOf(of, seen, fixed, p.runs, now)
	p.capabilities, p.checked = checksOf(of, seen.report)
	return p, nil
}

// settingsOf returns the settings of a broker.
func settingsOf(of *v1alpha1.TinkerEndpoint, seen observed, known map[string]spending.Price,
	fixed rules.FixedLabels) endpoint.Settings {
	spec := of.Spec
	settings := endpoint.Settings{
		Endpoint: of.Name, Generation: of.Generation, BaseURL: spec.BaseURL, ProxyURL: spec.ProxyURL,
		Project: spec.ProjectID, Models: spec.Allowed.Models, Prices: pricesOf(seen, known),
		Publication: spec.Allowed.Publication == v1alpha1.PublicationOwn, Connection: rules.ServerConnection(of),
	}
	if l := spec.Limits; l != nil {
		settings.Limits = endpoint.Limits{RequestsPerSecond: ptr.Deref(l.RequestsPerSecond, 0),
			UnfinishedSamples: int(ptr.Deref(l.UnfinishedSamples, 0))}
	}
	for _, readable := range spec.ReadableCheckpoints {
		settings.Readable = append(settings.Readable, endpoint.Readable{Namespaces: readable.Namespaces,
			Checkpoints: readable.Checkpoints})
	}
	for _, budget := range spec.Budgets {
		settings.Budgets = append(settings.Budgets, endpoint.Budget{Name: budget.Name, USD: ptr.Deref(budget.USD, 0),
			Tokens: ptr.Deref(budget.Tokens, 0), Period: endpoint.Period(budget.Period)})
	}
	for _, r := range seen.runs {
		if rules.Refusal(of, r.run, r.namespace, fixed) == nil {
			settings.Runs = append(settings.Runs, runOf(spec, r))
		}
	}
	return settings
}

// runOf returns a run as the broker knows it.
func runOf(spec v1alpha1.TinkerEndpointSpec, r namespacedRun) endpoint.Run {
	run := endpoint.Run{
		UID: string(r.run.UID), Namespace: r.run.Namespace, Name: r.run.Name, Model: r.run.Spec.Model.Name,
		User: r.creator, Labels: r.run.Labels, Weight: rules.WeightOf(spec, r.run, r.namespace),
	}
	if from := r.run.Spec.ResumeFrom; from != nil {
		run.Former = from.UID
	}
	for _, budget := range rules.BudgetsOf(spec, r.run, r.namespace) {
		run.Budgets = append(run.Budgets, budget.Name)
	}
	return run
}

// pricesOf returns the prices of the broker: the endpoint's own prices, which take precedence over the operator's. If
// the endpoint's prices cannot be read, the former prices stay.
func pricesOf(seen observed, known map[string]spending.Price) map[string]spending.Price {
	all := maps.Clone(known)
	if all == nil {
		all = map[string]spending.Price{}
	}
	if seen.unreadable == "" {
		maps.Copy(all, seen.prices)
		return all
	}
	var former endpoint.Settings
	if json.Unmarshal([]byte(seen.former), &former) == nil {
		maps.Copy(all, former.Prices)
	}
	return all
}

// encodeSettings encodes settings. They include finished runs, because people use the checkpoints of those runs. If the
// settings do not fit into a ConfigMap, encodeSettings leaves out the runs that finished first, whose tokens then no
// longer count.
func encodeSettings(settings endpoint.Settings, runs []namespacedRun) ([]byte, error) {
	encoded, err := json.Marshal(settings)
	if err == nil && len(encoded) > maxSettings {
		if settings.Runs, err = withoutOldest(settings.Runs, runs, len(encoded)-maxSettings); err == nil {
			encoded, err = json.Marshal(settings)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encoding settings: %w", err)
	}
	if len(encoded) > maxSettings {
		return nil, fmt.Errorf("encoding settings: %d runs in progress do not fit into a ConfigMap: divide them among "+
			"several TinkerEndpoints", len(settings.Runs))
	}
	return encoded, nil
}

// withoutOldest leaves out the runs that finished first, until save bytes are saved or no finished run is left.
func withoutOldest(all []endpoint.Run, runs []namespacedRun, save int) ([]endpoint.Run, error) {
	over := map[string]time.Time{}
	for _, r := range runs {
		if status.RunFinished(r.run) {
			over[string(r.run.UID)] = ptr.Deref(r.run.Status.CompletionTime, r.run.CreationTimestamp).Time
		}
	}
	oldest := slices.SortedStableFunc(maps.Keys(over), func(a, b string) int {
		return cmp.Or(over[a].Compare(over[b]), cmp.Compare(a, b))
	})
	sizes := map[string]int{}
	for _, run := range all {
		encoded, err := json.Marshal(run)
		if err != nil {
			return nil, err
		}
		sizes[run.UID] = len(encoded) + 1
	}
	left := map[string]bool{}
	for _, uid := range oldest {
		if save <= 0 {
			break
		}
		left[uid], save = true, save-sizes[uid]
	}
	return slices.DeleteFunc(slices.Clone(all), func(run endpoint.Run) bool { return left[run.UID] }), nil
}

// usageOf returns the reported usage of the budgets in the spec; without a report, the usage in the former status.
func usageOf(of *v1alpha1.TinkerEndpoint, report *endpoint.Report) []v1alpha1.EndpointBudgetUsage {
	if report == nil {
		return of.Status.Usage
	}
	named := map[string]endpoint.BudgetUsage{}
	for _, used := range report.Budgets {
		named[used.Name] = used
	}
	var all []v1alpha1.EndpointBudgetUsage
	for _, budget := range of.Spec.Budgets {
		used, ok := named[budget.Name]
		if !ok {
			continue
		}
		usage := v1alpha1.EndpointBudgetUsage{Name: used.Name, Tokens: ptr.To(used.Tokens),
			USD: ptr.To(status.Round(used.USD))}
		if !used.Since.IsZero() {
			usage.Since = ptr.To(metav1.NewTime(used.Since))
		}
		all = append(all, usage)
	}
	return all
}

// conditionsOf returns Ready and Stalled.
func conditionsOf(of *v1alpha1.TinkerEndpoint, seen observed, fixed rules.FixedLabels, runs int32,
	now time.Time) (ready, stalled status.Condition) {
	const isReady, isStalled = v1alpha1.ConditionReady, v1alpha1.ConditionStalled
	found := problemOf(of, seen, fixed)
	serving := status.True(isReady, v1alpha1.ReasonServing, fmt.Sprintf("The broker serves the endpoint. %s", count(runs)))
	expected := status.False(isStalled, v1alpha1.ReasonAsExpected, "No intervention is required.")
	switch {
	case found.Code == problem.EndpointPricesInvalid && seen.ready > 0:
		return serving, show(isStalled, metav1.ConditionTrue, found)
	case found.Code != "":
		return show(isReady, metav1.ConditionFalse, found), show(isStalled, metav1.ConditionTrue, found)
	case seen.ready > 0:
		return serving, expected
	}
	starting := status.Unknown(isReady, v1alpha1.ReasonBrokerStarting,
		"The broker starts, or takes over from another pod.")
	since, already := status.Since(of.Status.Conditions, isReady, metav1.ConditionUnknown)
	overdue := status.Find(of.Status.Conditions, of.Status.Codes, isReady)
	if overdue != nil && overdue.Code == problem.BrokerUnavailable || already && now.Sub(since) >= startPatience {
		found = problem.Problem{Code: problem.BrokerUnavailable, Evidence: "no pod is ready"}
		return show(isReady, metav1.ConditionFalse, found), show(isStalled, metav1.ConditionTrue, found)
	}
	return starting, expected
}

// problemOf returns the problem of an endpoint that a person has to repair; the zero value if none is known.
func problemOf(of *v1alpha1.TinkerEndpoint, seen observed, fixed rules.FixedLabels) problem.Problem {
	report := ptr.Deref(seen.report, endpoint.Report{})
	invalid, chosen := invalidSelector(of.Spec), chosenLabel(of.Spec, fixed)
	switch {
	case invalid != "":
		return problem.Problem{Code: problem.EndpointInvalid, Evidence: invalid}
	case chosen != "":
		return problem.Problem{Code: problem.EndpointInvalid, Evidence: chosen,
			Repair: "List the label in the chart's value endpoints.labels, or select namespaces alone. Runs that the " +
				"budget might not count wait until then."}
	case seen.missing != "":
		return problem.Problem{Code: problem.EndpointObjectNotFound, Evidence: seen.missing}
	case seen.ready == 0 && seen.obstacle.Code != "":
		return seen.obstacle
	case report.RecordsFailed != "":
		return problem.Problem{Code: problem.RecordsFailed, Evidence: report.RecordsFailed}
	case report.KeyRefused != "":
		return problem.Problem{Code: problem.ServerKeyRefused, Evidence: report.KeyRefused}
	case report.Unreachable != "":
		return status.AtServer(of.Spec, problem.Problem{Code: cmp.Or(report.UnreachableCode, problem.ServerUnreachable),
			Evidence: report.Unreachable})
	case seen.unreadable != "":
		return problem.Problem{Code: problem.EndpointPricesInvalid, Evidence: seen.unreadable}
	}
	return problem.Problem{}
}

// invalidSelector says which selector of a spec is not valid; empty if all are valid.
func invalidSelector(spec v1alpha1.TinkerEndpointSpec) string {
	invalid := func(field string, selector *metav1.LabelSelector) string {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			return fmt.Sprintf("%s: %v", field, err)
		}
		return ""
	}
	found := invalid("spec.allowed.namespaceSelector", spec.Allowed.NamespaceSelector)
	for _, b := range spec.Budgets {
		found = cmp.Or(found, invalid(fmt.Sprintf("spec.budgets[%s].namespaceSelector", b.Name), b.NamespaceSelector),
			invalid(fmt.Sprintf("spec.budgets[%s].labelSelector", b.Name), b.LabelSelector))
	}
	for _, w := range spec.Weights {
		found = cmp.Or(found, invalid(fmt.Sprintf("spec.weights[%s].namespaceSelector", w.Name), w.NamespaceSelector))
	}
	return found
}

// chosenLabel says which budget of a spec selects runs by labels that their authors choose; empty if none does.
func chosenLabel(spec v1alpha1.TinkerEndpointSpec, fixed rules.FixedLabels) string {
	for _, budget := range spec.Budgets {
		if names := fixed.Unfixed(budget); names != "" {
			return fmt.Sprintf("spec.budgets[%s].labelSelector: no admission policy fixes the label %s, which the author of "+
				"a run chooses", budget.Name, names)
		}
	}
	return ""
}

// show is a condition of an endpoint that has a problem.
func show(kind string, is metav1.ConditionStatus, found problem.Problem) status.Condition {
	found.Evidence = status.Trim(found.Evidence, rules.MaxEvidence)
	c := status.Show(kind, is, found)
	c.Message = found.Sentences()
	return c
}

func count(runs int32) string {
	if runs == 1 {
		return "One run is in progress."
	}
	return fmt.Sprintf("%d runs are in progress.", runs)
}
