// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// metered is a client whose calls are counted, a sampling session, and the simulator.
type metered struct {
	simulated
	sim      *tinkersim.Server
	meter    *client.Meter
	sampling string
}

func startMetered(t *testing.T, config client.MeterConfig) metered {
	t.Helper()
	server := tinker.DefaultServerConfig()
	server.MaxChunkLen = 2
	sim, url := simulatortest.Serve(t, tinkersim.Options{Config: &server, PollPatience: 5 * time.Second})
	m := metered{sim: sim, meter: client.NewMeter(config)}
	api, err := client.New(client.Config{BaseURL: url, APIKey: "tml-test", Meter: m.meter})
	if err != nil {
		t.Fatal(err)
	}
	session, err := api.CreateSession(t.Context(), client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m.simulated = simulated{api, session}
	if m.sampling, err = api.CreateSamplingSession(t.Context(), session, 1, "", tinkersim.ModelName); err != nil {
		t.Fatal(err)
	}
	return m
}

// sample asks for two samples of a prompt of three tokens.
func (m metered) sample(ctx context.Context, number int64) error {
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(5), new(int64(3))
	_, err := m.Sample(ctx, tinker.SampleRequest{
		NumSamples: 2, Prompt: tinker.Text([]int32{1, 2, 3}), SamplingParams: params, SamplingSession: m.sampling,
		SeqID: &number,
	})
	return err
}

// check compares the counters with the simulator's bill.
func (m metered) check(t *testing.T, unconfirmed int64) {
	t.Helper()
	billed, used := m.sim.Stats().Billed, m.meter.Used()
	want := spending.Usage{
		PromptTokens: billed.PromptTokens, SampledTokens: billed.SampledTokens,
		TrainedTokens: billed.ForwardBackwardTokens + billed.ForwardTokens, UnconfirmedTokens: unconfirmed,
	}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("usage (-billed +counted):\n%s", diff)
	}
}

// TestMeterCountsWhatIsBilled makes calls that fail in different ways, and compares the counters with the simulator's.
func TestMeterCountsWhatIsBilled(t *testing.T) {
	const most = 3 + 2*5
	cases := map[string]struct {
		rules []fault.Rule
		do    func(t *testing.T, m metered)
		// unconfirmed is the number of tokens that may have been executed.
		unconfirmed int64
	}{
		"samples": {nil, func(t *testing.T, m metered) {
			for number := range int64(3) {
				if err := m.sample(t.Context(), number+1); err != nil {
					t.Error(err)
				}
			}
		}, 0},
		"the same request twice": {nil, func(t *testing.T, m metered) {
			for range 2 {
				if err := m.sample(t.Context(), 1); err != nil {
					t.Error(err)
				}
			}
		}, 0},
		"an answer that is lost": {[]fault.Rule{{Op: "asample", Do: fault.DropAnswer}}, func(t *testing.T, m metered) {
			if err := m.sample(t.Context(), 1); err != nil {
				t.Error(err)
			}
		}, 0},
		"a request that is refused": {[]fault.Rule{{Op: "asample", Do: fault.Refuse, Status: 422}},
			func(t *testing.T, m metered) {
				if err := m.sample(t.Context(), 1); err == nil {
					t.Error("no error")
				}
			}, 0},
		"a result that is a failure": {[]fault.Rule{{Op: "asample", Do: fault.Fail}}, func(t *testing.T, m metered) {
			if err := m.sample(t.Context(), 1); err == nil {
				t.Error("no error")
			}
		}, most},
		"a pass in chunks, a forward pass and a repeat": {nil, func(t *testing.T, m metered) {
			model := m.model(t, 0)
			train(t, model)
			forward, err := model.Forward(t.Context(), trainingData(), crossEntropy)
			wait(t, forward, err)
			if _, err := model.RecognisesRepeats(t.Context(), trainingData()[:1], crossEntropy); err != nil {
				t.Error(err)
			}
		}, 0},
		"a pass of which a chunk fails": {[]fault.Rule{{Op: "forward_backward", Occurrence: 2, Do: fault.Fail,
			Category: "user"}}, func(t *testing.T, m metered) {
			future, err := m.model(t, 0).ForwardBackward(t.Context(), trainingData(), crossEntropy)
			if err == nil {
				_, err = future.Wait(t.Context())
			}
			if err == nil {
				t.Error("no error")
			}
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMetered(t, client.MeterConfig{Lifetime: t.Context()})
			if len(tc.rules) > 0 {
				if _, err := m.sim.Faults().Add(tc.rules); err != nil {
					t.Fatal(err)
				}
			}
			tc.do(t, m)
			m.check(t, tc.unconfirmed)
		})
	}
}

// TestMeterLearnsWhatBecomesOfARequest cancels a call for samples that the server draws later.
func TestMeterLearnsWhatBecomesOfARequest(t *testing.T) {
	for name, follows := range map[string]bool{"while the process lives": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			config := client.MeterConfig{}
			if follows {
				config.Lifetime = t.Context()
			}
			m := startMetered(t, config)
			ids, err := m.sim.Faults().Add([]fault.Rule{{ID: "held", Op: "asample", Do: fault.Hold}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- m.sample(ctx, 1) }()
			for m.sim.Stats().Calls["retrieve_future"] == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatalf("the call ended with %v, want it canceled", err)
			}
			if got := m.meter.Used(); got != (spending.Usage{UnconfirmedTokens: 13}) {
				t.Errorf("the usage is %+v while nothing is known, want 13 unconfirmed tokens", got)
			}
			if err := m.sim.Faults().Release(ids[0]); err != nil {
				t.Fatal(err)
			}
			for m.sim.Stats().Billed.SampledTokens == 0 || (follows && m.meter.Used().UnconfirmedTokens > 0) {
				time.Sleep(time.Millisecond)
			}
			if !follows {
				if got := m.meter.Used(); got != (spending.Usage{UnconfirmedTokens: 13}) {
					t.Errorf("the usage is %+v, want 13 unconfirmed tokens", got)
				}
				return
			}
			m.check(t, 0)
		})
	}
}

// TestMeterAsksBeforeItSends checks that only granted requests are sent.
func TestMeterAsksBeforeItSends(t *testing.T) {
	var granted []int64
	limit, refusal := int64(20), errors.New("no store")
	m := startMetered(t, client.MeterConfig{Grant: func(_ context.Context, tokens int64) error {
		granted = append(granted, tokens)
		if tokens > limit {
			return refusal
		}
		return nil
	}})
	if err := m.sample(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	used := m.meter.Used().Spent()
	if err := m.meter.Reserve(t.Context(), 100); !errors.Is(err, refusal) {
		t.Errorf("Reserve = %v, want %v", err, refusal)
	}
	before := m.sim.Stats().Calls["asample"]
	limit = used + 12 // one token less than the next sample may cost
	err := m.sample(t.Context(), 2)
	if after := m.sim.Stats().Calls["asample"]; !errors.Is(err, refusal) || after != before {
		t.Errorf("a request that is not granted ends with %v after %d requests, want %v after %d", err, after, refusal,
			before)
	}
	if diff := cmp.Diff([]int64{13, used + 100, used + 13}, granted); diff != "" {
		t.Errorf("tokens that were to be granted (-want +got):\n%s", diff)
	}
	m.check(t, 0)
}

// TestMeterOfUses counts samples by use and account.
func TestMeterOfUses(t *testing.T) {
	m := startMetered(t, client.MeterConfig{})
	account := &client.Account{}
	ctx := client.WithAccount(t.Context(), account)
	for number, ctx := range []context.Context{ctx, client.WithUse(ctx, client.UseReference),
		client.WithUse(t.Context(), client.UseJudge)} {
		if err := m.sample(ctx, int64(number+1)); err != nil {
			t.Fatal(err)
		}
	}
	m.meter.Add(spending.Usage{JudgePromptTokens: 7}, account)
	sampled := m.sim.Stats().Billed.SampledTokens / 3 // the seeds are equal
	want := spending.Usage{PromptTokens: 3, SampledTokens: sampled, ReferenceTokens: 3 + sampled, JudgePromptTokens: 7}
	used, accounts := m.meter.Read(account)
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]client.Account{{Used: want, Largest: 8}}, accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
}
