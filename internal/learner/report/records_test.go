// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
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
	if got, _ := s.Records(contract.HeartbeatRequest{}); got != nil {
		t.Errorf("a manager that reads no records receives %d", len(got))
	}
	var known int64
	for _, want := range []struct{ first, last int64 }{{1, 128}, {129, 256}, {257, 300}} {
		for range 2 {
			got, more := s.Records(ask(known))
			if len(got) == 0 || more != (want.last < 300) || got[0].Number != want.first || got[len(got)-1].Number != want.last {
				t.Fatalf("after record %d: records %+v, more %v, want %+v", known, got, more, want)
			}
		}
		known = want.last
	}
	if got, _ := s.Records(ask(known)); len(got) != 0 {
		t.Errorf("%d records are left", len(got))
	}
}

// TestRecordsOfALongSilence adds more records than are kept before a manager asks, and checks that the manager's
// history equals the history of a manager that has received all records.
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
		records, _ := s.Records(ask(got.Known))
		got.Add("pod", records)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(history.History{})); diff != "" {
		t.Errorf("history (-all records +kept records):\n%s", diff)
	}
}

func TestRecordsOfLostStepsAreBounded(t *testing.T) {
	s := NewStatus("uid", 1, time.Now)
	for range maxKept + 10 {
		s.AddRecord(contract.Record{Resumed: true})
	}
	if got, _ := s.Records(ask(0)); len(s.records.kept) != maxKept || got[0].Number != 11 {
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

// environmentNames returns n names of 63 bytes, the longest names that a label may have.
func environmentNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("reasoning-gym-%02d-%s", i, strings.Repeat("x", 46)))
	}
	return names
}

// TestReplyOfManyEnvironmentsIsRead sends the records of a resumed run with 32 environments to the manager's client,
// until the client has all of them, and checks that no reply is longer than the limit of an earlier manager.
func TestReplyOfManyEnvironmentsIsRead(t *testing.T) {
	const steps, earlierLimit = 200, 256 << 10
	s := NewStatus("uid", 1, time.Now)
	metrics := map[string]float64{contract.MetricReward: 0.123456789}
	for _, name := range environmentNames(32) {
		for _, metric := range []string{"env/" + name + "/reward/total", "env/" + name + "/correct",
			"test/" + name + "/pass@1", "test/" + name + "/pass@4/ci95_low"} {
			metrics[metric] = 0.123456789012345
		}
	}
	s.SetStep(metrics, false)
	for step := range int64(steps) {
		s.AddRecord(contract.Record{Step: step + 1, Lineage: strings.Repeat("ab", 5), Attempt: 1, Time: 1790000000,
			Metrics: metrics})
	}
	longest := 0
	server := httptest.NewTLSServer(heartbeat.Handler("uid", func(string) bool { return true },
		func(r contract.HeartbeatRequest) contract.HeartbeatReply {
			reply := s.Reply("")
			reply.Records, reply.MoreRecords = s.Records(r)
			data, err := json.Marshal(reply)
			if err != nil {
				t.Error(err)
			}
			longest = max(longest, len(data))
			return reply
		}))
	defer server.Close()
	client := heartbeat.Client{HTTP: server.Client(), Token: "t"}
	request := ask(0)
	request.RunUID, request.Attempt = "uid", 1
	for more := true; more; {
		reply, err := client.Post(t.Context(), strings.TrimPrefix(server.URL, "https://"), request)
		if err != nil {
			t.Fatalf("after record %d: %v", request.KnownRecords, err)
		}
		if kept, excess := reply.Bounded(); excess != "" || len(kept.Records) != len(reply.Records) {
			t.Fatalf("the manager leaves out %q of a reply of the project's own learner", excess)
		}
		if reply.Records[0].Number != request.KnownRecords+1 {
			t.Fatalf("record %d follows on %d", reply.Records[0].Number, request.KnownRecords)
		}
		request.KnownRecords, more = reply.Records[len(reply.Records)-1].Number, reply.MoreRecords
	}
	if request.KnownRecords != steps || longest > earlierLimit {
		t.Errorf("the manager has %d records of %d, and the longest reply has %d bytes, want at most %d",
			request.KnownRecords, steps, longest, earlierLimit)
	}
}

// TestPageHasTheBoundOfRecords checks that docs/observing.md has the number of records that wait before they are
// thinned.
func TestPageHasTheBoundOfRecords(t *testing.T) {
	page, err := os.ReadFile("../../../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("more than %d,%03d wait", maxKept/1000, maxKept%1000); !strings.Contains(string(page), want) {
		t.Errorf("docs/observing.md does not say %q", want)
	}
}
