// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// dataWorkers returns n workers, all of which wait for a download.
func dataWorkers(n int, now time.Time) *workers {
	ws := newWorkers(time.Minute)
	for i := range n {
		w := ws.observe(fmt.Sprint(i), now)
		w.renew(exchange.Renewal{State: &exchange.WorkerState{DataState: exchange.DataWaiting}})
	}
	return &ws
}

func TestDownloadsAreBounded(t *testing.T) {
	now := time.Unix(1, 0)
	ws := dataWorkers(20, now)
	permitted := func() (names []string) {
		for i := range 20 {
			if name := fmt.Sprint(i); ws.permitDownload(ws.byName[name], now) {
				names = append(names, name)
			}
		}
		return names
	}
	if got := fmt.Sprint(permitted()); got != "[0 1 2 3]" {
		t.Fatalf("permits = %s, want the first four", got)
	}
	ws.byName["0"].renew(exchange.Renewal{State: &exchange.WorkerState{DataState: exchange.DataDownloading}})
	ws.byName["1"].renew(exchange.Renewal{State: &exchange.WorkerState{DataState: exchange.DataSettled}})
	if got := fmt.Sprint(permitted()); got != "[0 2 3 4]" {
		t.Errorf("after worker 1 has its data the permits = %s", got)
	}
	ws.disconnect("2", now.Add(-redial-time.Second))
	delete(ws.byName, "2")
	ws.observe("2", now)
	if got := fmt.Sprint(permitted()); got != "[0 3 4 5]" {
		t.Errorf("after worker 2 was replaced the permits = %s", got)
	}
}

// TestDownloadsOfAnEarlierLearner checks that a new learner counts the workers that are already downloading.
func TestDownloadsOfAnEarlierLearner(t *testing.T) {
	now := time.Unix(1, 0)
	ws := dataWorkers(5, now)
	for i := 1; i < 5; i++ {
		ws.byName[fmt.Sprint(i)].renew(exchange.Renewal{State: &exchange.WorkerState{DataState: exchange.DataDownloading}})
	}
	if ws.permitDownload(ws.byName["0"], now) || !ws.permitDownload(ws.byName["1"], now) {
		t.Error("a fifth worker is permitted, or one that downloads is not")
	}
}

// TestProblemsOfData reports data that no live worker can read, and a judge that any worker cannot ask.
func TestProblemsOfData(t *testing.T) {
	now := time.Unix(1, 0)
	for name, tc := range map[string]struct {
		first, second problem.Code
		want          []problem.Code
	}{
		"one of two workers": {first: problem.DataBlocked},
		"both workers":       {problem.DataBlocked, problem.DataBlocked, []problem.Code{problem.DataBlocked}},
		"a private authority, for one of two workers": {first: problem.DataAuthorityUnknown},
		"a private authority, for both": {problem.TokenizerBlocked, problem.DataAuthorityUnknown,
			[]problem.Code{problem.DataAuthorityUnknown}},
		"a judge of a private authority, for one": {problem.JudgeAuthorityUnknown, "",
			[]problem.Code{problem.JudgeAuthorityUnknown}},
	} {
		table := &Table{workers: *dataWorkers(2, now), config: Config{Now: func() time.Time { return now }}}
		for i, code := range []problem.Code{tc.first, tc.second} {
			if code != "" {
				table.workers.byName[fmt.Sprint(i)].renew(exchange.Renewal{State: &exchange.WorkerState{
					Problems: []*exchange.Problem{{Code: string(code), Evidence: "x509"}}}})
			}
		}
		var got []problem.Code
		for _, found := range table.Problems() {
			got = append(got, found.Code)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", name, diff)
		}
	}
}
