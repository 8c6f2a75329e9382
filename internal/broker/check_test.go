// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// everything returns a request to check all features.
func everything() tinker.CheckRequest {
	r := tinker.CheckRequest{BaseModel: tinkersim.ModelName, Lora: tinker.DefaultLora()}
	for _, f := range capability.All() {
		r.Features = append(r.Features, string(f))
	}
	return r
}

// models returns the number of models that were made.
func (f *fixture) models() int64 { return f.sim.Stats().Operations["create_model"] }

// TestCheck lets two runs ask at once, and one later. The broker checks once, with objects of its own, which no run
// sees. The platform pays for the check, which counts against no budget.
func TestCheck(t *testing.T) {
	m := newMetered(t, func(_ *metered, c *broker.Config) { c.Namespace, c.ClientVersion = "operator", "v1" })
	var asking sync.WaitGroup
	for _, run := range []broker.Run{first, second} {
		asking.Go(func() {
			found, err := m.as(run).CheckAtBroker(t.Context(), everything())
			if err != nil {
				t.Error(err)
				return
			}
			// A simulator supports all that a run may need.
			if len(found.Supported) != len(everything().Features) {
				t.Errorf("ignored are %q, unsupported %q and %d supported, want all", found.Ignored, found.Unsupported,
					len(found.Supported))
			}
			if found.Endpoint != "shared" || found.ClientVersion != "v1" || found.CheckedAt != "2027-02-01T12:00:00Z" {
				t.Errorf("found %+v", found)
			}
		})
	}
	asking.Wait()
	made := m.models()
	if made < 20 {
		t.Errorf("%d models were made: nothing was checked", made)
	}
	if _, err := m.as(first).CheckAtBroker(t.Context(), everything()); err != nil || m.models() != made {
		t.Errorf("another run that asks has %d models made (%v), want none", m.models()-made, err)
	}
	for run, err := range m.as(first).TrainingRuns(t.Context()) {
		t.Errorf("a run sees the model %s of the check (%v)", run.TrainingRunID, err)
	}
	m.checkBilled(broker.CheckUID)
	if row := m.used(broker.CheckUID); row.Namespace != "operator" || row.Run != broker.CheckUID || row.Tokens.Train == 0 {
		t.Errorf("the usage of the check is %+v, want the operator's", row)
	}
	if row := m.used("first"); row.Tokens != (endpoint.Tokens{}) {
		t.Errorf("the run has used %+v, want nothing", row)
	}
	report := m.broker.Report().Checks
	if len(report) != 1 || report[0].Model != tinkersim.ModelName || m.clock().Sub(report[0].CheckedAt) > time.Second ||
		report[0].Checking || len(report[0].Supported) != len(everything().Features) {
		t.Errorf("reported %+v", report)
	}
	if runs := m.broker.Stats().Runs; runs != 2 {
		t.Errorf("%d runs are served, want 2: the broker's own is none", runs)
	}
}

// TestCheckIsKept checks that the next broker knows the results of its predecessor, but not of the check that was in
// progress.
func TestCheckIsKept(t *testing.T) {
	f := newFixture(t, nil)
	r := everything()
	r.Features = []string{"seed"}
	if _, err := f.as(first).CheckAtBroker(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	made := f.models()
	ids, err := f.sim.Faults().Add([]fault.Rule{{ID: "hold", Op: "optim_step", Do: fault.Hold}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		other := r
		other.Features = []string{"adam.beta1"}
		if _, err := f.as(first).CheckAtBroker(ctx, other); err == nil {
			t.Error("the check that the broker's death interrupted has a result")
		}
	})
	for f.models() == made {
		time.Sleep(time.Millisecond)
	}
	f.broker.Close()
	cancel()
	asking.Wait()
	if err := f.sim.Faults().Release(ids[0]); err != nil {
		t.Fatal(err)
	}
	made = f.models()
	f.open()
	if found, err := f.as(second).CheckAtBroker(t.Context(), r); err != nil || f.models() != made ||
		!slices.Contains(found.Supported, "seed") {
		t.Errorf("the next broker found %+v (%v) by %d models, want the earlier findings", found, err, f.models()-made)
	}
	r.Features = []string{"adam.beta1"}
	if found, err := f.as(second).CheckAtBroker(t.Context(), r); err != nil || f.models() == made ||
		!slices.Contains(found.Supported, "adam.beta1") {
		t.Errorf("the next broker found %+v (%v) by %d models, want beta1 by some", found, err, f.models()-made)
	}
}

// TestCheckRefused checks the codes with which a run is answered. No run ends because of them.
func TestCheckRefused(t *testing.T) {
	f := newFixture(t, func(c *broker.Config) { c.Models = []string{tinkersim.ModelName, "unknown"} })
	for name, tc := range map[string]struct {
		model, body string
		status      int
		code        problem.Code
	}{
		"a model that the server does not have":     {"unknown", "", http.StatusBadRequest, problem.CheckRefused},
		"a model that the endpoint does not permit": {"forbidden", "", http.StatusBadRequest, problem.ModelRefused},
		"no model":                               {"", "", http.StatusUnprocessableEntity, problem.RequestInvalid},
		"something else":                         {"", "[1]", http.StatusUnprocessableEntity, problem.RequestInvalid},
		"a body that is larger than such a body": {"", strings.Repeat(" ", 1<<17), 422, problem.RequestInvalid},
	} {
		body := tc.body
		if body == "" {
			body = fmt.Sprintf(`{"base_model":%q,"lora_config":{"rank":4},"features":["seed"]}`, tc.model)
		}
		got := f.callAs(first, http.MethodPost, "/api/v1/"+tinker.PathCheck, body)
		if got.status != tc.status || got.header.Get(tinker.HeaderBrokerCode) != string(tc.code) {
			t.Errorf("%s: %d %s %s, want %d %s", name, got.status, got.header.Get(tinker.HeaderBrokerCode), got.body,
				tc.status, tc.code)
		}
	}
	if report := f.broker.Report().Checks; len(report) != 1 || report[0].Model != "unknown" || report[0].Refused == "" {
		t.Errorf("reported %+v, want the refusal", report)
	}
	_, err := f.as(first).CheckAtBroker(t.Context(), tinker.CheckRequest{BaseModel: "unknown", Features: []string{"seed"}})
	if code := client.FailsOf(err); code != problem.CheckRefused {
		t.Errorf("a run fails with %s (%v), want %s", code, err, problem.CheckRefused)
	}
}

// TestCheckWithoutServer checks that a run learns why the broker cannot check.
func TestCheckWithoutServer(t *testing.T) {
	f := newFixture(t, func(c *broker.Config) { c.BaseURL = "http://127.0.0.1:1" })
	soon, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := f.broker.Check(soon); err == nil {
		t.Fatal("the server answers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var codes []problem.Code
	c, err := client.New(client.Config{BaseURL: f.url, APIKey: contract.RunToken(tokenKey, first.UID),
		Observe: func(e client.Event) {
			mu.Lock()
			defer mu.Unlock()
			if codes = append(codes, e.Code); len(codes) == 1 {
				cancel()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CheckAtBroker(ctx, everything()); !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v, want to be repeated until the test ends", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if codes[0] != problem.EndpointUnreachable {
		t.Errorf("the run is told %s, want %s", codes[0], problem.EndpointUnreachable)
	}
}
