// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

func TestUsageIsWrittenAndRestored(t *testing.T) {
	now := time.Date(2027, 2, 1, 23, 59, 0, 0, time.UTC)
	core := fake.NewClientset().CoreV1()
	o := options{namespace: "ops", endpoint: "shared"}
	settings := endpoint.Settings{Runs: []endpoint.Run{{UID: "a", Namespace: "team", Name: "run", Model: "m",
		Budgets: []string{"b"}}}, Budgets: []endpoint.Budget{{Name: "b", Tokens: 10, Period: endpoint.PeriodForever}}}
	open := func(dir string) *meter.Meter {
		m, err := meter.Open(meter.Config{Dir: dir, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		m.SetSettings(settings)
		return m
	}
	use := func(m *meter.Meter, id string) {
		ticket, err := m.Reserve(t.Context(), meter.Request{Run: "a", Tokens: endpoint.Tokens{Train: 7}})
		if err != nil {
			t.Fatal(err)
		}
		ticket.Accept(id)
		m.Settle(id, meter.Delivered, 0, 0)
	}
	check := func(m *meter.Meter) {
		t.Helper()
		a := newAccounts(o, core, m)
		for range 2 {
			now = now.Add(reportEvery)
			if err := a.write(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		for day, want := range map[string]int64{"20270201": 7, "20270202": 14} {
			at, err := time.Parse("20060102", day)
			if err != nil {
				t.Fatal(err)
			}
			written, err := core.ConfigMaps("ops").Get(t.Context(), endpoint.UsageName("shared", at), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := meter.DecodeUsage(written.Data[endpoint.UsageKey])
			wanted := []endpoint.Usage{{Day: at, UID: "a", Namespace: "team", Run: "run", Model: "m",
				Tokens: endpoint.Tokens{Train: want}, Unpriced: want}}
			if diff := cmp.Diff(wanted, rows); diff != "" || err != nil {
				t.Errorf("usage of %s (-want +got), %v:\n%s", day, err, diff)
			}
		}
	}
	m := open(t.TempDir())
	use(m, "f1")
	now = now.Add(2 * time.Minute) // the next day
	use(m, "f2")
	use(m, "f3")
	m.Close()
	check(m)
	report := newReporter(o, core, "me")
	if err := report.write(t.Context(), endpoint.Report{Budgets: m.Budgets(now)}, now); err != nil {
		t.Fatal(err)
	}

	m = open(t.TempDir()) // the records are lost
	defer m.Close()
	if err := newAccounts(o, core, m).restore(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	check(m)
	if got := m.Budgets(now); got[0].Tokens != 21 {
		t.Errorf("the budget has %d tokens, want 21", got[0].Tokens)
	}
}
