// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// bill is a bill, by the run that the metadata of sessions name, and by the type of usage.
type bill map[string]map[string]int64

// billBetween asks for the bill of hours.
func (b *backend) billBetween(from, to string) bill {
	b.t.Helper()
	answer, err := b.call(http.MethodGet, "/api/v1/billing/usage/events?starting_on="+from+"&ending_before="+to, "")
	if err != nil || answer.status != http.StatusOK {
		b.t.Fatalf("%v: %+v", err, answer)
	}
	var got struct {
		Data []struct {
			Session string `json:"session_id"`
			Project string `json:"project_id"`
			Info    struct {
				Type   string
				Tokens int64 `json:"token_count"`
				Count  int64
			} `json:"event_info"`
		}
		Sessions map[string]struct {
			Metadata map[string]string `json:"user_metadata"`
		}
	}
	if err := json.Unmarshal([]byte(answer.body), &got); err != nil {
		b.t.Fatalf("%v: %s", err, answer.body)
	}
	found := bill{}
	for _, event := range got.Data {
		owner := event.Project + "/" + got.Sessions[event.Session].Metadata["run"]
		if found[owner] == nil {
			found[owner] = map[string]int64{}
		}
		found[owner][event.Info.Type] += event.Info.Tokens + event.Info.Count
	}
	return found
}

// TestBillIsSplitByMetadata bills each session for its own tokens and checkpoints, in the hour in which it used them.
func TestBillIsSplitByMetadata(t *testing.T) {
	clock := newClock()
	b := start(t, tinkersim.Options{Clock: clock.Now})
	c, ctx := b.client(), t.Context()
	session := func(run, project string) string {
		id, err := c.CreateSession(ctx, client.SessionRequest{UserMetadata: map[string]string{"run": run},
			ProjectID: project})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	trains, samples := session("trains", "p"), session("samples", "")
	m := b.model(c, trains, 0)
	step(t, m, datum("1+1=2"))
	future, err := m.SaveState(ctx, client.SaveRequest{Name: "one"})
	done(t, future, err)
	sampler, err := c.CreateSamplingSession(ctx, samples, 0, "", tinkersim.ModelName)
	if err != nil {
		t.Fatal(err)
	}
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Temperature = new(3), 0
	request := tinker.SampleRequest{NumSamples: 2, Prompt: tinker.Text(text("12+34=")), SamplingParams: params,
		SamplingSession: sampler, SeqID: new(int64(1))}
	var sampled int64
	for range 2 { // a repetition is not billed
		result, err := c.Sample(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		sampled = int64(len(result.Sequences[0].Tokens) + len(result.Sequences[1].Tokens))
	}
	want := bill{
		"p/trains": {"training": int64(len(text("1+1=2")) - 1), "checkpoint": 1},
		"/samples": {"sampling_prefill": 6, "sampling_sample": sampled},
	}
	if diff := cmp.Diff(want, b.billBetween("2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z")); diff != "" {
		t.Errorf("the bill (-want +got):\n%s", diff)
	}
	if other := b.billBetween("2026-11-21T13:00:00Z", "2026-11-22T00:00:00Z"); len(other) > 0 {
		t.Errorf("the bill of other hours has %v", other)
	}
}
