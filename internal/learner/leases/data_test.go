// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// dataWorkers are workers that all wait for a download.
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

// TestDownloadsOfAnEarlierLearner checks that workers which download already count for a learner that starts.
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
