// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

var now = time.Date(2026, 11, 14, 9, 0, 0, 0, time.UTC)

func newEndpoint(changes ...func(*v1alpha1.TinkerEndpoint)) *v1alpha1.TinkerEndpoint {
	e := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "prod", Generation: 4}}
	e.Spec.BaseURL = "https://tinker.example.com"
	e.Spec.Allowed.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for _, change := range changes {
		change(e)
	}
	return e
}

func newRun(name string, over bool) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	run.Spec.Model.Name, run.Spec.Tinker.EndpointRef = "m", &ref.Endpoint{Name: "prod"}
	if over {
		run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	}
	return run
}

func ofTeam(team string, runs ...*v1alpha1.TrainingRun) []namespacedRun {
	var all []namespacedRun
	for _, run := range runs {
		all = append(all, namespacedRun{run: run, namespace: map[string]string{"team": team}})
	}
	return all
}

func planned(t *testing.T, of *v1alpha1.TinkerEndpoint, seen observed) (plan, endpoint.Settings) {
	t.Helper()
	p, err := makePlan(of, seen, map[string]spending.Price{"m": {Prompt: 1}, "n": {Prompt: 2}},
		rules.FixedLabels{OfNamespace: []string{"team"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	var settings endpoint.Settings
	if err := json.Unmarshal(p.settings, &settings); err != nil {
		t.Fatal(err)
	}
	return p, settings
}

// TestSettings checks the settings of a broker: the allowed runs, including finished ones, with their former runs,
// weights and budgets, and the prices of the endpoint, which take precedence over the operator's.
func TestSettings(t *testing.T) {
	of := newEndpoint(func(e *v1alpha1.TinkerEndpoint) {
		e.Spec.ProxyURL, e.Spec.ProjectID, e.Spec.Allowed.Models = "http://proxy", "p", []string{"m"}
		e.Spec.Allowed.Publication = v1alpha1.PublicationOwn
		e.Spec.Limits = &v1alpha1.EndpointLimits{RequestsPerSecond: ptr.To(5.0)}
		e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "b", USD: ptr.To(3.0), Period: v1alpha1.BudgetPeriodMonth}}
		e.Spec.ReadableCheckpoints = []v1alpha1.ReadableCheckpoints{{Namespaces: []string{"x"},
			Checkpoints: []string{"tinker://r/weights/s"}}}
	})
	heir := newRun("heir", false)
	heir.Spec.ResumeFrom, heir.Spec.Tinker.Weight = &v1alpha1.ResumeFrom{UID: "gone"}, ptr.To[int32](2)
	other := newRun("model", false)
	other.Spec.Model.Name = "n"
	seen := observed{runs: append(ofTeam("a", newRun("done", true), heir, other),
		ofTeam("b", newRun("stranger", false))...),
		prices: map[string]spending.Price{"m": {Prompt: 7}}}
	p, got := planned(t, of, seen)
	want := endpoint.Settings{Endpoint: "prod", Generation: 4, BaseURL: "https://tinker.example.com",
		ProxyURL: "http://proxy", Project: "p", Models: []string{"m"},
		Readable: []endpoint.Readable{{Namespaces: []string{"x"}, Checkpoints: []string{"tinker://r/weights/s"}}},
		Limits:   endpoint.Limits{RequestsPerSecond: 5}, Publication: true, Connection: rules.ServerConnection(of),
		Prices:  map[string]spending.Price{"m": {Prompt: 7}, "n": {Prompt: 2}},
		Budgets: []endpoint.Budget{{Name: "b", USD: 3, Period: endpoint.PeriodMonth}},
		Runs: []endpoint.Run{
			{UID: "uid-done", Namespace: "ns", Name: "done", Model: "m", Weight: 1, Budgets: []string{"b"}},
			{UID: "uid-heir", Namespace: "ns", Name: "heir", Former: "gone", Model: "m", Weight: 2, Budgets: []string{"b"}},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if p.runs != 1 {
		t.Errorf("%d runs are in progress, want 1", p.runs)
	}
	again, _ := planned(t, of, seen)
	if string(again.settings) != string(p.settings) {
		t.Errorf("the settings of the same cluster differ: the broker would read them anew for ever: got %v, want %v",
			string(again.settings), string(p.settings))
	}
}

// TestPricesThatCannotBeReadStay keeps the broker's former prices.
func TestPricesThatCannotBeReadStay(t *testing.T) {
	seen := observed{unreadable: "row 0 has no tinker_id", former: `{"prices":{"m":{"prompt":9}}}`, ready: 1}
	p, got := planned(t, newEndpoint(), seen)
	if got.Prices["m"].Prompt != 9 || got.Prices["n"].Prompt != 2 {
		t.Errorf("prices are %v", got.Prices)
	}
	if p.ready.Status != metav1.ConditionTrue || p.stalled.Code != problem.EndpointPricesInvalid {
		t.Errorf("ready is %v, stalled %v", p.ready, p.stalled)
	}
}

// TestSettingsFitIntoAConfigMap checks that the runs that ended first are left out, and that more runs than fit are
// refused.
func TestSettingsFitIntoAConfigMap(t *testing.T) {
	many := func(n int, over bool) []namespacedRun {
		var runs []*v1alpha1.TrainingRun
		for i := range n {
			run := newRun(fmt.Sprintf("run-%d-%v", i, over), over)
			run.Labels = map[string]string{"text": strings.Repeat("x", 63)}
			if over {
				run.Status.CompletionTime = ptr.To(metav1.NewTime(now.Add(-time.Duration(i) * time.Minute)))
			}
			runs = append(runs, run)
		}
		return ofTeam("a", runs...)
	}
	p, got := planned(t, newEndpoint(), observed{runs: append(many(6500, true), many(100, false)...)})
	if len(p.settings) > maxSettings || len(p.settings) < maxSettings*9/10 {
		t.Errorf("the settings have %d bytes, want nearly %d", len(p.settings), maxSettings)
	}
	running, newest := 0, 0
	for _, run := range got.Runs {
		n, over := 0, false
		if _, err := fmt.Sscanf(run.Name, "run-%d-%t", &n, &over); err != nil {
			t.Fatal(err)
		}
		if !over {
			running++
			continue
		}
		newest = max(newest, n)
	}
	if running != 100 || newest != len(got.Runs)-100-1 {
		t.Errorf("%d runs in progress, and of %d that are over the earliest is number %d", running, len(got.Runs)-running,
			newest)
	}
	_, err := makePlan(newEndpoint(), observed{runs: many(9000, false)}, nil, rules.FixedLabels{}, now)
	if err == nil || !strings.Contains(err.Error(), "several TinkerEndpoints") {
		t.Errorf("the error of 9000 runs is %v", err)
	}
}

// TestConditions checks Ready and Stalled for each observation.
func TestConditions(t *testing.T) {
	report := func(change func(*endpoint.Report)) *endpoint.Report {
		r := &endpoint.Report{}
		change(r)
		return r
	}
	before := func(age time.Duration, is metav1.ConditionStatus, code problem.Code) func(*v1alpha1.TinkerEndpoint) {
		return func(e *v1alpha1.TinkerEndpoint) {
			c := status.Unknown(v1alpha1.ConditionReady, v1alpha1.ReasonBrokerStarting, "x")
			if code != "" {
				c = status.Show(v1alpha1.ConditionReady, is, problem.Problem{Code: code})
			}
			status.Set(&e.Status.Conditions, &e.Status.Codes, 4, now.Add(-age), c)
		}
	}
	invalid := func(e *v1alpha1.TinkerEndpoint) {
		e.Spec.Weights = []v1alpha1.NamespaceWeight{{Name: "w", NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Foo"}}}}}
	}
	chosen := func(e *v1alpha1.TinkerEndpoint) {
		e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "trial", LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"project": "x"}}}}
	}
	for name, tc := range map[string]struct {
		of             *v1alpha1.TinkerEndpoint
		seen           observed
		ready, stalled string
	}{
		"serves": {newEndpoint(), observed{ready: 1}, "True Serving", "False AsExpected"},
		"starts": {newEndpoint(), observed{}, "Unknown BrokerStarting", "False AsExpected"},
		"starts for a moment": {newEndpoint(before(59*time.Second, "", "")), observed{},
			"Unknown BrokerStarting", "False AsExpected"},
		"does not start": {newEndpoint(before(time.Minute, "", "")), observed{},
			"False BrokerUnavailable", "True BrokerUnavailable"},
		"still does not start": {newEndpoint(before(0, metav1.ConditionFalse, problem.BrokerUnavailable)), observed{},
			"False BrokerUnavailable", "True BrokerUnavailable"},
		"the key is refused": {newEndpoint(), observed{ready: 1,
			report: report(func(r *endpoint.Report) { r.KeyRefused = "401" })}, "False KeyRefused", "True KeyRefused"},
		"the server is silent": {newEndpoint(), observed{ready: 1,
			report: report(func(r *endpoint.Report) { r.Unreachable = "timeout" })}, "False EndpointUnreachable",
			"True EndpointUnreachable"},
		"no space": {newEndpoint(), observed{ready: 1, report: report(func(r *endpoint.Report) { r.RecordsFailed = "full" })},
			"False RecordsFailed", "True RecordsFailed"},
		"no Secret": {newEndpoint(), observed{obstacle: problem.Problem{Code: problem.EndpointObjectNotFound, Evidence: "x"}},
			"False SecretNotFound", "True SecretNotFound"},
		"no authority":   {newEndpoint(), observed{ready: 1, missing: "x"}, "False SecretNotFound", "True SecretNotFound"},
		"a bad selector": {newEndpoint(invalid), observed{ready: 1}, "False SpecInvalid", "True SpecInvalid"},
		"a budget by a label that authors choose": {newEndpoint(chosen), observed{ready: 1}, "False SpecInvalid",
			"True SpecInvalid"},
	} {
		p, _ := planned(t, tc.of, tc.seen)
		next := computeStatus(tc.of, p, "operator", now)
		for kind, want := range map[string]string{v1alpha1.ConditionReady: tc.ready, v1alpha1.ConditionStalled: tc.stalled} {
			c := status.Find(next.Conditions, next.Codes, kind)
			if got := string(c.Status) + " " + c.Reason; got != want || c.Message == "" {
				t.Errorf("%s: %s is %q with %q, want %q", name, kind, got, c.Message, want)
			}
		}
		if strings.Contains(p.stalled.Message, "The run ") {
			t.Errorf("%s: the message speaks of a run: %s", name, p.stalled.Message)
		}
	}
}

// TestBudgetByLabel checks that a budget by a label that the author of a run chooses is refused with the field and the
// repair, and that the broker serves no run that the budget may fail to count.
func TestBudgetByLabel(t *testing.T) {
	by := func(key string) func(*v1alpha1.TinkerEndpoint) {
		return func(e *v1alpha1.TinkerEndpoint) {
			e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "trial", LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{key: "a"}}}}
		}
	}
	labelled, other := newRun("labelled", false), newRun("other", false)
	labelled.Labels, other.Labels = map[string]string{"team": "a"}, map[string]string{"team": "b"}
	seen := observed{ready: 1, runs: ofTeam("a", labelled, other)}
	p, got := planned(t, newEndpoint(by("project")), seen)
	for _, words := range []string{`spec.budgets[trial].labelSelector: no admission policy fixes the label "project"`,
		"endpoints.labels"} {
		if !strings.Contains(p.ready.Message, words) {
			t.Errorf("the message is %q, want %q", p.ready.Message, words)
		}
	}
	if len(got.Runs) != 0 || p.runs != 0 {
		t.Errorf("the broker serves %v (%d in progress), want none", got.Runs, p.runs)
	}
	if p, got = planned(t, newEndpoint(by("team")), seen); len(got.Runs) != 1 || got.Runs[0].Name != "labelled" ||
		got.Runs[0].Budgets[0] != "trial" || p.ready.Status != metav1.ConditionTrue {
		t.Errorf("the broker serves %v (%s), want the run with the label of its namespace", got.Runs, p.ready.Message)
	}
}

// TestRepairOfAServer names the field by which a person repairs a server that is not the Tinker API, or that the broker
// does not trust.
func TestRepairOfAServer(t *testing.T) {
	authority := func(e *v1alpha1.TinkerEndpoint) {
		e.Spec.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "ca", Key: "ca.crt"}
	}
	none := func(*v1alpha1.TinkerEndpoint) {}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TinkerEndpoint)
		code   problem.Code
		repair string
	}{
		"a private authority": {none, problem.EndpointAuthorityUnknown, "name the ConfigMap in " +
			"spec.caBundleConfigMapKeyRef."},
		"another authority": {authority, problem.EndpointAuthorityUnknown, `Correct the authorities in ConfigMap "ca" of ` +
			"spec.caBundleConfigMapKeyRef."},
		"a version in the path": {func(e *v1alpha1.TinkerEndpoint) { e.Spec.BaseURL = "https://tinker.example/v1" },
			problem.EndpointNotTinker, "Drop /v1 from spec.baseURL, since /api/v1 is appended to it."},
		"no TLS":               {none, problem.EndpointWithoutTLS, "Begin spec.baseURL with http://"},
		"a client certificate": {none, problem.EndpointRefusesTLS, "by spec.clientCertificateSecretRef."},
		"no answer":            {none, "", "Check spec.baseURL, spec.proxyURL"},
	} {
		p, _ := planned(t, newEndpoint(tc.change), observed{report: &endpoint.Report{Unreachable: "no answer",
			UnreachableCode: tc.code}})
		want := tc.code
		if want == "" {
			want = problem.ServerUnreachable
		}
		if !strings.Contains(p.ready.Message, "no answer") || !strings.Contains(p.ready.Message, tc.repair) ||
			strings.Contains(p.ready.Message, "tinker.baseURL") || p.ready.Code != want || p.stalled.Code != want {
			t.Errorf("%s: the message is %q with the code %s, want %q", name, p.ready.Message, p.ready.Code, tc.repair)
		}
	}
}

// TestUsage shows the reported usage of the budgets in the spec, and keeps it while there is no report.
func TestUsage(t *testing.T) {
	of := newEndpoint(func(e *v1alpha1.TinkerEndpoint) {
		e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "b"}, {Name: "new"}}
		e.Status.Usage = []v1alpha1.EndpointBudgetUsage{{Name: "b", Tokens: ptr.To[int64](1)}}
	})
	if p, _ := planned(t, of, observed{}); *p.usage[0].Tokens != 1 {
		t.Errorf("without a report the usage is %v", p.usage)
	}
	since := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	p, _ := planned(t, of, observed{report: &endpoint.Report{Budgets: []endpoint.BudgetUsage{
		{Name: "b", Since: since, Tokens: 5, USD: 2}, {Name: "removed", Tokens: 9}}}})
	want := []v1alpha1.EndpointBudgetUsage{{Name: "b", Since: ptr.To(metav1.NewTime(since)), Tokens: ptr.To[int64](5),
		USD: ptr.To(2.0)}}
	if diff := cmp.Diff(want, p.usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// TestMountCode distinguishes objects that the platform has to create from a volume that is not ready.
func TestMountCode(t *testing.T) {
	for words, want := range map[string]problem.Code{
		`SetUp failed for volume "key" : secret "tinker" not found`:                problem.EndpointObjectNotFound,
		`SetUp failed for volume "key" : references non-existent secret key: K`:    problem.EndpointObjectNotFound,
		`Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) x`: problem.BrokerUnavailable,
	} {
		if got := mountCode(words); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}
