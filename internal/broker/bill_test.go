// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// TestTheBillOfAnHour compares the server's bill with the counted tokens, also while another user of the account
// samples.
func TestTheBillOfAnHour(t *testing.T) {
	var upstream string
	m := newMetered(t, func(m *metered, c *broker.Config) {
		_, upstream = simulatortest.Serve(t, tinkersim.Options{APIKey: apiKey, Clock: m.clock})
		c.BaseURL = upstream
	})
	hour := m.clock()
	trainOnce(t.Context(), t, m.as(first))
	sample := func(c *client.Client) {
		t.Helper()
		session, err := c.CreateSession(t.Context(), client.SessionRequest{})
		if err != nil {
			t.Fatal(err)
		}
		sampler, err := c.CreateSamplingSession(t.Context(), session, 0, "", tinkersim.ModelName)
		if err != nil {
			t.Fatal(err)
		}
		params := tinker.DefaultSampling()
		params.MaxTokens = new(7)
		if _, err := c.Sample(t.Context(), tinker.SampleRequest{SamplingSession: sampler, SeqID: new(int64(0)), NumSamples: 2,
			Prompt: tinker.Text([]int32{49, 43, 50}), SamplingParams: params}); err != nil {
			t.Fatal(err)
		}
	}
	sample(m.as(first))
	m.used("first") // waits until everything is recorded
	bill, err := m.broker.Bill(t.Context(), hour)
	if err != nil || bill == nil {
		t.Fatalf("the bill is %v, %v", bill, err)
	}
	if bill.Billed != bill.Counted || bill.Billed.Prefill == 0 || bill.Billed.Sample == 0 || bill.Billed.Train == 0 {
		t.Errorf("billed are %+v, and counted %+v", bill.Billed, bill.Counted)
	}

	direct, err := client.New(client.Config{BaseURL: upstream, APIKey: apiKey})
	if err != nil {
		t.Fatal(err)
	}
	sample(direct)
	again, err := m.broker.Bill(t.Context(), hour)
	if err != nil || *again != *bill {
		t.Errorf("beside another user the bill is %+v (%v), want %+v", again, err, bill)
	}

	m.advance(time.Hour)
	if next, err := m.broker.Bill(t.Context(), hour.Add(time.Hour)); err != nil || *next != (broker.Bill{}) {
		t.Errorf("the bill of an hour without requests is %+v, %v", next, err)
	}
	if before, err := m.broker.Bill(t.Context(), hour.Add(-time.Hour)); err != nil || before != nil {
		t.Errorf("the bill of an hour that another meter counted is %+v, %v", before, err)
	}
}

// TestHoursAreCountedFromTheOpening checks that a meter reports an hour as whole only if the hour began after the
// meter was opened.
func TestHoursAreCountedFromTheOpening(t *testing.T) {
	now := time.Date(2027, 2, 1, 12, 30, 0, 0, time.UTC)
	m, err := meter.Open(meter.Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	first := now.Truncate(time.Hour)
	for hour, want := range map[int]bool{0: false, 1: true} {
		if counted, whole := m.Hour(first.Add(time.Duration(hour) * time.Hour)); whole != want ||
			counted != (endpoint.Tokens{}) {
			t.Errorf("hour %d is whole: %v, want %v", hour, whole, want)
		}
	}
	now = now.Add(24 * time.Hour)
	if _, whole := m.Hour(first.Add(time.Hour)); whole {
		t.Error("an hour of yesterday is known")
	}
}
