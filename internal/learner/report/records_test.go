// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

func ask(known int64) contract.HeartbeatRequest {
	return contract.HeartbeatRequest{HistoryVersion: contract.HistoryVersion, KnownRecords: known}
}

func TestRecordsAreRepeatedUntilTheyAreKnown(t *testing.T) {
	s := NewStatus("uid", 1, time.Now)
	for step := range int64(300) {
		s.AddRecord(contract.Record{Step: step + 1})
	}
	if got := s.Records(contract.HeartbeatRequest{}); got != nil {
		t.Errorf("a manager that reads no records receives %d", len(got))
	}
	var known int64
	for _, want := range []struct{ first, last int64 }{{1, 128}, {129, 256}, {257, 300}} {
		for range 2 {
			got := s.Records(ask(known))
			if len(got) == 0 || got[0].Number != want.first || got[len(got)-1].Number != want.last {
				t.Fatalf("after record %d: records %+v, want %+v", known, got, want)
			}
		}
		known = want.last
	}
	if got := s.Records(ask(known)); len(got) != 0 {
		t.Errorf("%d records are left", len(got))
	}
}

// TestRecordsOfALongSilence adds more records than are kept before a manager asks: its history is the one that it would have if
// it had received all of them.
func TestRecordsOfALongSilence(t *testing.T) {
	s := NewStatus("uid", 1, time.Now)
	var want history.History
	add := func(record contract.Record) {
		s.AddRecord(record)
		record.Number = s.records.newest
		want.Add("pod", []contract.Record{record})
	}
	for step := range int64(5*maxKept + 3) {
		add(contract.Record{Step: step + 1, Metrics: map[string]float64{contract.MetricReward: float64(step)}})
		if step%100 == 0 {
			add(contract.Record{Step: step + 1, Evaluation: true, Metrics: map[string]float64{contract.MetricPassAt1: 0.5}})
		}
	}
	if kept := len(s.records.kept); kept > maxKept {
		t.Errorf("%d records are kept, want at most %d", kept, maxKept)
	}
	var got history.History
	for len(s.records.kept) > 0 {
		got.Add("pod", s.Records(ask(got.Known)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-all records +kept records):\n%s", diff)
	}
}

func TestRecordsOfLostStepsAreBounded(t *testing.T) {
	s := NewStatus("uid", 1, time.Now)
	for range maxKept + 10 {
		s.AddRecord(contract.Record{Resumed: true})
	}
	if got := s.Records(ask(0)); len(s.records.kept) != maxKept || got[0].Number != 11 {
		t.Errorf("%d records are kept from number %d, want %d from number 11", len(s.records.kept), got[0].Number, maxKept)
	}
}

func TestAwaitRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, stored bool
		want          time.Duration
	}{
		"a manager that stores them": {true, true, 2 * time.Second},
		"a manager that is silent":   {true, false, 8 * time.Second},
		"no manager":                 {false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStatus("uid", 1, time.Now)
				s.AddRecord(contract.Record{Step: 1})
				if tc.asked {
					s.Records(ask(0))
				}
				if tc.stored {
					time.AfterFunc(2*time.Second, func() { s.Records(ask(1)) })
				}
				before := time.Now()
				s.AwaitRecords(t.Context(), 8*time.Second)
				if got := time.Since(before); got != tc.want {
					t.Errorf("waited %v, want %v", got, tc.want)
				}
			})
		})
	}
}
