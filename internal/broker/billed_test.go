// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/broker/share"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// metered is a fixture whose broker has a meter.
type metered struct {
	*fixture
	meter    *meter.Meter
	settings endpoint.Settings

	mu  sync.Mutex
	now time.Time
}

func newMetered(t *testing.T, change func(*metered, *broker.Config)) *metered {
	t.Helper()
	m := &metered{now: time.Date(2027, 2, 1, 12, 0, 0, 0, time.UTC), settings: endpoint.Settings{
		Prices: map[string]spending.Price{tinkersim.ModelName: {Prompt: 1, Sampled: 2, Trained: 3}},
		Runs: []endpoint.Run{{UID: "first", Namespace: "team", Name: "one", Model: "unknown", Weight: 1,
			Budgets: []string{"team"}}, {UID: "second", Namespace: "team", Name: "two", Model: "unknown", Weight: 1}},
	}}
	m.fixture = newFixture(t, func(c *broker.Config) {
		var err error
		if m.meter, err = meter.Open(meter.Config{Dir: t.TempDir(), Now: m.clock}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.meter.Close)
		c.Meter, c.Now = m.meter, m.clock
		if change != nil {
			change(m, c)
		}
	})
	m.apply()
	return m
}

func (m *metered) clock() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *metered) advance(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(by)
}

// apply puts the settings in force, as the manager does.
func (m *metered) apply() {
	m.t.Helper()
	if err := m.broker.Apply(m.settings, apiKey, tokenKey, nil); err == nil {
		m.t.Fatal("settings without an address are applied, want an error")
	}
	m.settings.BaseURL = m.config.BaseURL
	if err := m.broker.Apply(m.settings, apiKey, tokenKey, nil); err != nil {
		m.t.Fatal(err)
	}
	m.settings.BaseURL = ""
}

// used returns the usage of a run with the model of the simulator, once everything is recorded.
func (m *metered) used(uid string) endpoint.Usage {
	m.t.Helper()
	if err := m.meter.Restore(m.t.Context(), []endpoint.Usage{{Day: m.clock().AddDate(0, 0, -1).Truncate(24 * time.Hour),
		UID: "flush", Unpriced: m.clock().UnixNano()}}, nil); err != nil {
		m.t.Fatal(err)
	}
	m.advance(1)
	for _, row := range m.meter.Usage(m.clock()) {
		if row.UID == uid && row.Model == tinkersim.ModelName {
			return row
		}
	}
	return endpoint.Usage{}
}

// checkBilled compares the counted tokens with the simulator's bill.
func (m *metered) checkBilled(uid string) endpoint.Tokens {
	m.t.Helper()
	got, billed := m.used(uid), m.sim.Stats().Billed
	want := endpoint.Tokens{Prefill: billed.PromptTokens, Sample: billed.SampledTokens,
		Train: billed.ForwardBackwardTokens, Forward: billed.ForwardTokens}
	if got.Tokens != want {
		m.t.Errorf("%s has used %+v, want the %+v of the simulator", uid, got.Tokens, want)
	}
	if got.Unpriced != 0 || got.USD == 0 && want != (endpoint.Tokens{}) {
		m.t.Errorf("%s has used %v dollars and %d tokens without a price", uid, got.USD, got.Unpriced)
	}
	return want
}

// TestTheBrokerCountsWhatIsBilled trains and samples with the real client, in each encoding of bodies.
func TestTheBrokerCountsWhatIsBilled(t *testing.T) {
	for name, options := range map[string]tinkersim.Options{
		"protobuf": {}, "compressed": {Config: compressing()}, "JSON": {Dialect: "json"},
	} {
		t.Run(name, func(t *testing.T) {
			var sim *tinkersim.Server
			m := newMetered(t, func(_ *metered, c *broker.Config) {
				options.APIKey = apiKey
				sim, c.BaseURL = simulatortest.Serve(t, options)
			})
			m.sim = sim
			ctx, c := t.Context(), m.as(first)
			if options.Dialect != "" {
				c.UseJSON()
			}
			trainOnce(ctx, t, c)
			session, err := c.CreateSession(ctx, client.SessionRequest{})
			if err != nil {
				t.Fatal(err)
			}
			sampler, err := c.CreateSamplingSession(ctx, session, 0, "", tinkersim.ModelName)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				params := tinker.DefaultSampling()
				params.MaxTokens, params.Seed = new(7+i), new(int64(i))
				r := tinker.SampleRequest{SamplingSession: sampler, SeqID: new(int64(i)), NumSamples: 1 + i,
					Prompt: tinker.Text([]int32{49, 43, 50, 61}[:1+i%4]), SamplingParams: params}
				for range 2 { // a repeated request counts once
					if _, err := c.Sample(ctx, r); err != nil {
						t.Fatal(err)
					}
				}
			}
			if billed := m.checkBilled("first"); billed.Sample < 10 || billed.Train == 0 || billed.Prefill < 10 {
				t.Errorf("the simulator billed %+v: the test asks for too little", billed)
			}
			if got := m.used("second"); got.Tokens != (endpoint.Tokens{}) {
				t.Errorf("another run has used %+v", got)
			}
		})
	}
}

func compressing() *tinker.ServerConfig {
	config := tinker.DefaultServerConfig()
	config.CompressForwardBackward = true
	return &config
}

func TestForwardCountsApart(t *testing.T) {
	m := newMetered(t, nil)
	ctx, c := t.Context(), m.as(first)
	m.make(first)
	session, err := c.CreateSession(ctx, client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	trained, err := c.CreateModel(ctx, tinker.CreateModelRequest{Session: session, BaseModel: tinkersim.ModelName,
		Lora: tinker.LoraConfig{Rank: 4, TrainAttn: true, TrainMLP: true, TrainUnembed: true}})
	if err != nil {
		t.Fatal(err)
	}
	data := []tinker.Datum{{ModelInput: tinker.Text([]int32{1, 2, 3}), LossFnInputs: map[string]tinker.Tensor{
		tinker.InputTargetTokens: tinker.Ints([]int64{2, 3, 4}), tinker.InputWeights: tinker.Floats([]float32{1, 1, 1})}}}
	known, err := trained.RecognisesRepeats(ctx, data, tinker.Loss{Name: tinker.LossCrossEntropy})
	if err != nil || !known {
		t.Fatalf("RecognisesRepeats = %t, %v", known, err)
	}
	// The sample that make submits was not fetched.
	if got := m.used("first").Tokens; got != (endpoint.Tokens{Forward: 3}) {
		t.Errorf("used %+v, want 3 tokens of forward, once", got)
	}
	m.advance(4 * time.Minute)
	m.broker.FetchUnpolled(ctx)
	if got := m.used("first").Tokens; got.Prefill != 0 {
		t.Errorf("used %+v before five minutes", got)
	}
	m.advance(time.Minute)
	m.broker.FetchUnpolled(ctx)
	m.checkBilled("first")
	if len(m.meter.Unfinished()) != 0 {
		t.Errorf("a result that was fetched is open: got %v, want none", m.meter.Unfinished())
	}
}

func TestABrokerWithoutItsLeaseFetchesNothing(t *testing.T) {
	var ended atomic.Bool
	m := newMetered(t, func(_ *metered, c *broker.Config) {
		c.Lease = func() error {
			if ended.Load() {
				return errors.New("another release serves the endpoint")
			}
			return nil
		}
	})
	m.make(first)
	m.advance(5 * time.Minute)
	for _, lost := range []bool{true, false} {
		ended.Store(lost)
		m.broker.FetchUnpolled(t.Context())
		if open := len(m.meter.Unfinished()) > 0; open != lost {
			t.Errorf("the lease lost: %t, a result open: %t", lost, open)
		}
	}
}

func TestASampleThatFailsOrIsLostCountsNothing(t *testing.T) {
	for name, row := range map[string]struct {
		answer string
		status int
		fetch  bool
	}{
		"failed": {`{"error":"out of memory","category":"server"}`, 200, false},
		"lost":   {`{"detail":"lost"}`, 410, false},
		"failed by status, as the broker's poll finds": {`{"detail":"failed"}`, 400, true},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := scriptedMeter(t)
			m.sample(`1`, 200)
			s.set("retrieve_future", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				_, _ = fmt.Fprint(w, row.answer)
			})
			m.callAs(first, http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"future-of-asample"}`)
			if open := len(m.meter.Unfinished()); open != 0 != row.fetch {
				t.Errorf("%d samples are open after the run's poll", open)
			}
			m.advance(5 * time.Minute)
			m.broker.FetchUnpolled(t.Context())
			if open := len(m.meter.Unfinished()); open != 0 {
				t.Errorf("%d samples are open after the broker's poll", open)
			}
			if got := m.used("first").Tokens; got != (endpoint.Tokens{}) {
				t.Errorf("used %+v, want nothing", got)
			}
		})
	}
}

// scriptedMeter returns a broker with a meter in front of a scripted server, and a sampling session of the first run.
func scriptedMeter(t *testing.T) (*metered, *script) {
	t.Helper()
	s := &script{answers: map[string]http.HandlerFunc{}}
	m := newMetered(t, func(_ *metered, c *broker.Config) { c.BaseURL = serve(t, s) })
	s.set("create_sampling_session", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"sampling_session_id":"sampler"}`)
	})
	for path, body := range map[string]string{
		"create_session": `{}`, "create_model": `{"base_model":"m"}`,
		"create_sampling_session": `{"base_model":"` + tinkersim.ModelName + `"}`,
	} {
		if got := m.callAs(first, http.MethodPost, "/api/v1/"+path, body); got.status != http.StatusOK {
			t.Fatalf("%s = %+v", path, got)
		}
	}
	return m, s
}

// sample asks for samples of a prompt of three tokens.
func (m *metered) sample(seq string, want int) answer {
	m.t.Helper()
	got := m.callAs(first, http.MethodPost, "/api/v1/asample", `{"sampling_session_id":"sampler","seq_id":`+seq+
		`,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1,2,3]}]},"sampling_params":{"max_tokens":5}}`)
	if got.status != want {
		m.t.Errorf("asample = %+v, want %d", got, want)
	}
	return got
}

// deliver lets the server answer polls with a sample of a number of tokens, and polls for the newest sample as the
// run.
func (m *metered) deliver(s *script, tokens int) {
	m.t.Helper()
	s.set("retrieve_future", func(w http.ResponseWriter, _ *http.Request) {
		encoded, err := json.Marshal(make([]int, tokens))
		if err != nil {
			m.t.Error(err)
		}
		_, _ = fmt.Fprintf(w, `{"sequences":[{"stop_reason":"stop","tokens":%s}],"prompt_cache_hit_tokens":2}`, encoded)
	})
	m.callAs(first, http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"future-of-asample"}`)
}

func TestLargeResultsInJSONAreCounted(t *testing.T) {
	m, s := scriptedMeter(t)
	m.sample("1", 200)
	m.deliver(s, 100_000)
	if got := m.used("first").Tokens; got != (endpoint.Tokens{Prefill: 3, CachedPrefill: 2, Sample: 100_000}) {
		t.Errorf("used %+v, want 3 tokens of prompt and 100,000 samples", got)
	}
}

func TestABudgetThatIsReachedRefusesWhatIsBilled(t *testing.T) {
	m, s := scriptedMeter(t)
	m.settings.Budgets = []endpoint.Budget{{Name: "team", Tokens: 10, Period: endpoint.PeriodMonth}}
	m.apply()
	m.sample("1", 200)
	m.deliver(s, 7)
	m.used("first")
	m.meter.Tick()
	m.sample("2", 200) // while the run may drain
	m.advance(10 * time.Minute)
	got := m.sample("3", 402)
	checkRefusal(t, got, http.StatusPaymentRequired, problem.EndpointBudgetReached, false)
	if got.header.Get("Retry-After") == "" {
		t.Error("the refusal has no Retry-After")
	}
	for path, body := range map[string]string{
		"save_weights": `{"model_id":"m1","seq_id":1}`, "save_weights_for_sampler": `{"model_id":"m1","seq_id":2}`,
		"optim_step": step, "retrieve_future": `{"request_id":"future-of-asample"}`, "session_heartbeat": `{"session_id":"s1"}`,
	} {
		if got := m.callAs(first, http.MethodPost, "/api/v1/"+path, body); got.status != http.StatusOK {
			t.Errorf("%s = %+v, want that it passes", path, got)
		}
	}
	report := m.broker.Report()
	if len(report.Budgets) != 1 || report.Budgets[0].Tokens != 10 {
		t.Errorf("the report has the budgets %+v, want 10 tokens", report.Budgets)
	}
	m.settings.Budgets[0].Tokens = 100
	m.apply()
	m.sample("4", 200)
}

func TestSubmitsWaitForTheirShare(t *testing.T) {
	gate := share.New(share.Config{Patience: 50 * time.Millisecond})
	s := &script{answers: map[string]http.HandlerFunc{}}
	m := newMetered(t, func(m *metered, c *broker.Config) {
		c.BaseURL, c.Gate, c.Now = serve(t, s), gate, time.Now
		m.settings.Limits = endpoint.Limits{UnfinishedSamples: 1}
	})
	s.set("create_sampling_session", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"sampling_session_id":"sampler"}`)
	})
	for _, path := range []string{"create_session", "create_model", "create_sampling_session"} {
		m.callAs(first, http.MethodPost, "/api/v1/"+path, `{}`)
	}
	m.sample("1", 200)
	m.sample("1", 429)
	checkRefusal(t, m.sample("2", 429), http.StatusTooManyRequests, problem.Throttled, false)
	if got := m.callAs(first, http.MethodPost, "/api/v1/optim_step", step); got.status != 200 {
		t.Errorf("an operation waits behind samples: %+v", got)
	}
	if got := m.broker.Report().Throttled; len(got) != 1 || got[0].UID != "first" {
		t.Errorf("throttled = %+v, want the first run", got)
	}
	m.deliver(s, 1)
	s.set("asample", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	m.sample("3", 502) // a failed request takes no place
	s.set("asample", nil)
	m.callAs(first, http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"future-of-asample"}`)
	m.sample("4", 200)
}

func TestADrainEndsTheWaitForAShare(t *testing.T) {
	s := &script{answers: map[string]http.HandlerFunc{}}
	m := newMetered(t, func(m *metered, c *broker.Config) {
		c.BaseURL, c.Gate, c.Now = serve(t, s), share.New(share.Config{}), time.Now
		m.settings.Limits = endpoint.Limits{RequestsPerSecond: 0.01}
	})
	m.callAs(first, http.MethodPost, "/api/v1/create_session", `{}`)
	m.callAs(first, http.MethodPost, "/api/v1/create_model", `{}`) // the first turn
	waiting := make(chan answer)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	go func() { waiting <- m.callAs(first, http.MethodPost, "/api/v1/create_model", `{}`) }()
	for len(m.broker.Report().Throttled) == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		m.config.Gate.Tick()
	}
	m.broker.Drain()
	checkRefusal(t, <-waiting, http.StatusServiceUnavailable, problem.BrokerDraining, false)
}

// TestLargeBodiesAreCountedWhileTheyPass passes bodies that are too large for the broker to hold, in each encoding.
func TestLargeBodiesAreCountedWhileTheyPass(t *testing.T) {
	tokens := make([]int32, 30_000)
	for i := range tokens {
		tokens[i] = int32(i * 7919 % 200_000)
	}
	pass := tinker.ForwardBackwardRequest{ModelID: "m1", SeqID: 1, Loss: tinker.Loss{Name: tinker.LossCrossEntropy},
		Data: []tinker.Datum{{ModelInput: tinker.Text(tokens), LossFnInputs: map[string]tinker.Tensor{
			tinker.InputTargetTokens: tinker.Ints(make([]int64, len(tokens)))}}}}
	plain, err := tinker.EncodeForwardBackward(pass)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := tinker.Compress(plain)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tinker.EncodeForwardBackwardJSON(pass)
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := json.Marshal(tinker.Text(tokens))
	if err != nil {
		t.Fatal(err)
	}
	sample := `{"sampling_session_id":"sampler","seq_id":1,"num_samples":3,"sampling_params":{"max_tokens":4},"prompt":` +
		string(prompt) + `}`
	trained := endpoint.Tokens{Train: 30_000}
	for name, row := range map[string]struct {
		path, body string
		header     []string
		want       endpoint.Tokens
	}{
		"protobuf": {"forward_backward", string(plain), []string{"Content-Type", tinker.ContentProtobuf}, trained},
		"compressed": {"forward_backward", string(packed), []string{"Content-Type", tinker.ContentProtobuf,
			"Content-Encoding", "zstd"}, trained},
		"JSON":    {"forward_backward", string(text), nil, trained},
		"forward": {"forward", string(plain), []string{"Content-Type", tinker.ContentProtobuf}, endpoint.Tokens{Forward: 30_000}},
		"samples": {"asample", sample, nil, endpoint.Tokens{Prefill: 30_000, CachedPrefill: 2, Sample: 7}},
	} {
		for _, held := range []int64{1 << 20, 40 << 10} {
			m, s := scriptedMeter(t)
			m.broker.HoldAtMost(held)
			send := func() answer { return m.callAs(first, http.MethodPost, "/api/v1/"+row.path, row.body, row.header...) }
			if got := send(); got.status != http.StatusOK {
				t.Fatalf("%s: %+v", name, got)
			}
			s.set("retrieve_future", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(w, `{"sequences":[{"stop_reason":"stop","tokens":[1,2,3,4]},{"stop_reason":"stop",`+
					`"tokens":[5,6,7]}],"prompt_cache_hit_tokens":2}`)
			})
			m.callAs(first, http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"future-of-`+row.path+`"}`)
			if row.path == "asample" {
				if got := m.used("first").Tokens; got != row.want {
					t.Errorf("%s, %d bytes held: used %+v, want %+v", name, held, got, row.want)
				}
			} else if got := m.modelRow("first", "m"); got != row.want {
				t.Errorf("%s, %d bytes held: used %+v, want %+v", name, held, got, row.want)
			}
			m.meter.Close() // from here on nothing can be recorded
			seen := len(s.requests())
			checkRefusal(t, send(), http.StatusServiceUnavailable, problem.RecordsBlocked, false)
			for _, request := range s.requests()[seen:] {
				if len(request) >= len(row.body) {
					t.Errorf("%s, %d bytes held: the server received the whole request without a record", name, held)
				}
			}
		}
	}
}

// modelRow returns a run's usage of a model.
func (m *metered) modelRow(uid, model string) endpoint.Tokens {
	m.t.Helper()
	m.used(uid)
	for _, row := range m.meter.Usage(m.clock()) {
		if row.UID == uid && row.Model == model {
			return row.Tokens
		}
	}
	return endpoint.Tokens{}
}
