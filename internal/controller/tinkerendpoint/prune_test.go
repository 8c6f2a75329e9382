// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// TestOldUsageIsDeletedOnceADay checks that the days that people may ask for, the usage of other endpoints, and all
// other objects are kept.
func TestOldUsageIsDeletedOnceADay(t *testing.T) {
	at := now
	daysAgo := func(name string, n int) string { return endpoint.UsageName(name, at.AddDate(0, 0, -n)) }
	kube := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	add := func(names ...string) {
		for _, name := range names {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}
			if err := kube.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := New(Reconciler{Client: kube, Live: kube, Settings: desired.Settings{Namespace: "ops"},
		Now: func() time.Time { return at }})
	check := func(want ...string) {
		t.Helper()
		if err := r.prune(t.Context(), newEndpoint()); err != nil {
			t.Fatal(err)
		}
		var left corev1.ConfigMapList
		if err := kube.List(t.Context(), &left, client.InNamespace("ops")); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, object := range left.Items {
			names = append(names, object.Name)
		}
		slices.Sort(names)
		slices.Sort(want)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("remaining objects (-want +got):\n%s", diff)
		}
	}
	oldest, others := daysAgo("prod", endpoint.UsageDays-1), daysAgo("prod-usage", 2000)
	report := endpoint.ReportName("prod")
	add(oldest, others, report, daysAgo("prod", endpoint.UsageDays+1), daysAgo("prod", 5000), daysAgo("prod", 0))
	today := daysAgo("prod", 0)
	check(oldest, others, report, today)
	old := daysAgo("prod", 3000)
	add(old)
	check(oldest, others, report, today, old)
	at = at.Add(25 * time.Hour)
	check(oldest, others, report, today)
	at = at.AddDate(0, 0, 1)
	check(others, report, today)
}
