// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

var now = time.Date(2026, 11, 14, 9, 0, 0, 0, time.UTC)

func printed(t *testing.T, result output.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := output.Print(cli.IO{Stdout: &out}, output.Table, result); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestTableOfEndpoints checks that the table shows only the usage of the present period of a budget.
func TestTableOfEndpoints(t *testing.T) {
	since := func(month time.Month) *metav1.Time {
		return ptr.To(metav1.NewTime(time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)))
	}
	serving := v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "prod", CreationTimestamp: metav1.NewTime(
		now.Add(-time.Hour))}}
	serving.Spec.BaseURL = "https://tinker.example.com"
	serving.Spec.Budgets = []v1alpha1.EndpointBudget{
		{Name: "a", USD: ptr.To(50.0), Period: v1alpha1.BudgetPeriodMonth},
		{Name: "b", Tokens: ptr.To[int64](2000000), Period: v1alpha1.BudgetPeriodForever},
		{Name: "old", USD: ptr.To(5.0), Period: v1alpha1.BudgetPeriodMonth},
	}
	serving.Status = v1alpha1.TinkerEndpointStatus{Runs: ptr.To[int32](3), Namespace: "operator",
		Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Serving", Message: "It serves."}},
		Usage: []v1alpha1.EndpointBudgetUsage{{Name: "a", Since: since(11), USD: ptr.To(12.5)},
			{Name: "b", Tokens: ptr.To[int64](1000)}, {Name: "old", Since: since(10), USD: ptr.To(5.0)}},
		Capabilities: []v1alpha1.EndpointCapabilities{{Model: "m", CheckedAt: ptr.To(metav1.NewTime(now.Add(-2 * time.Hour))),
			Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"}}, {Model: "n", Refused: "no such model"}}}
	all := []v1alpha1.TinkerEndpoint{{ObjectMeta: metav1.ObjectMeta{Name: "idle"}}, serving}
	got := printed(t, tableOf(all, false, now))
	for _, words := range []string{"idle             Unknown   0      -", "https://tinker.example.com   True",
		"a: 12.50/50.00 USD; b: 1", "old: 0.00/5.00 USD"} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(words), " ")) {
			t.Errorf("the table lacks %q:\n%s", words, got)
		}
	}
	if wide := printed(t, tableOf(all, true, now)); !strings.Contains(wide, "It serves.") ||
		!strings.Contains(wide, "m 2h ago, lacks protobuf ttl; n, refused") ||
		!strings.Contains(wide, "endpoints.enabled") {
		t.Errorf("the wide table is\n%s", wide)
	}
}

// TestUsage reads the days that have records, groups the usage by namespace and label, and sorts it by cost.
func TestUsage(t *testing.T) {
	line := func(namespace, project string, day time.Time, usd float64, sample int64) string {
		data, err := json.Marshal(endpoint.Usage{Day: day, UID: "u", Namespace: namespace, Run: "r", Model: "m",
			Labels: map[string]string{"project": project}, USD: usd,
			Tokens: endpoint.Tokens{Prefill: 10, CachedPrefill: 4, Sample: sample, Train: 1, Forward: 2}, Unpriced: 3})
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	config := func(day time.Time, lines ...string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: endpoint.UsageName("prod", day)},
			Data: map[string]string{endpoint.UsageKey: strings.Join(lines, "")}}
	}
	yesterday, before := now.AddDate(0, 0, -1), now.AddDate(0, 0, -9)
	reader := fake.NewClientBuilder().WithObjects(
		config(now, line("a", "x", now, 1, 100), line("b", "x", now, 5, 50)),
		config(yesterday, line("a", "x", yesterday, 1, 100), line("a", "y", yesterday, 9, 1)),
		config(before, line("c", "x", before, 100, 1))).Build()
	all, err := readUsage(t.Context(), reader, "operator", "prod", now.AddDate(0, 0, -7), now)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := parseFields("namespace, label=project")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range usageTable(fields, group(all, fields)).Rows {
		got = append(got, strings.Join(row, " "))
	}
	want := []string{"a y 9.00 14 10 4 1 1 2 3", "b x 5.00 63 10 4 50 1 2 3", "a x 2.00 226 20 8 200 2 4 6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if _, err := decodeUsage("{\"uid\":\"a\"}\n{"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("the error of a bad line is %v", err)
	}
}

// TestFlags checks that unknown fields and periods are refused.
func TestFlags(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "36h": 36 * time.Hour, "d": 0, "-1h": 0,
		"0d": 0, "9999d": 0, "week": 0} {
		got, err := parseSince(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("--since %s: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, ok := range map[string]bool{"run,model,user,day": true, "label=a": true, "label=": false, "label": false,
		"team": false, "": false} {
		if _, err := parseFields(text); (err == nil) != ok {
			t.Errorf("--by %q: %v", text, err)
		}
	}
	format := wideFormat{Format: output.Table}
	if err := format.Set("wide"); err != nil || !format.wide {
		t.Errorf("wide is refused: %v", err)
	}
	if err := format.Set("yaml"); err == nil || !strings.Contains(err.Error(), "wide") {
		t.Errorf("the error of yaml is %v", err)
	}
}
