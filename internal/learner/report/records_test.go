// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
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

func TestRecordsAreBounded(t *testing.T) {
	s := NewStatus("uid", 1, time.Now)
	for step := range int64(maxKept + 10) {
		s.AddRecord(contract.Record{Step: step})
	}
	if got := s.Records(ask(0)); got[0].Number != 11 {
		t.Errorf("the oldest record is %d, want 11", got[0].Number)
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
