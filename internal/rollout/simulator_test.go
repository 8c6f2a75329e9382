// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// simulator is a running tinkersim with saved sampler weights.
type simulator struct {
	t       *testing.T
	server  *tinkersim.Server
	client  *client.Client
	sampler string
}

func newSimulator(t *testing.T) *simulator {
	t.Helper()
	server, err := tinkersim.New(tinkersim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		web.Close()
		server.Close()
	})
	s := &simulator{t: t, server: server}
	if s.client, err = client.New(client.Config{BaseURL: web.URL, APIKey: "tml-test"}); err != nil {
		t.Fatal(err)
	}
	m, err := s.client.CreateModel(t.Context(), tinker.CreateModelRequest{Session: s.session(), BaseModel: model,
		Lora: tinker.LoraConfig{Rank: 4, TrainMLP: true}})
	if err != nil {
		t.Fatal(err)
	}
	future, err := m.SaveSampler(t.Context(), client.SaveRequest{Name: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := future.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.sampler = saved.Path
	return s
}

func (s *simulator) session() string {
	s.t.Helper()
	session, err := s.client.CreateSession(s.t.Context(), client.SessionRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return session
}

// addFaults adds faults.
func (s *simulator) addFaults(rules ...fault.Rule) {
	s.t.Helper()
	if _, err := s.server.Faults().Add(rules); err != nil {
		s.t.Fatal(err)
	}
}

// board returns a learner that leases groups of the simulator's policy.
func (s *simulator) board(keys ...rl.Key) *scriptedLearner {
	b := newScriptedLearner(keys...)
	b.directive.Session = s.session()
	for i := range b.open {
		b.open[i].Sampler = s.sampler
	}
	return b
}

// digests plays the keys with workers of these names, and returns the digests of the groups.
func (s *simulator) digests(keys []rl.Key, during func(b *scriptedLearner), workers ...string) map[rl.Key]rl.Digest {
	s.t.Helper()
	place := newLearnerService(s.t)
	b := s.board(keys...)
	place.serve(b, 1)
	for _, name := range workers {
		r := place.start(name, s.client, nil)
		defer func() {
			if err := r.stop(); err != nil {
				s.t.Errorf("Run: %v", err)
			}
		}()
	}
	if during != nil {
		during(b)
	}
	arrive(s.t, b, keys...)
	out := map[rl.Key]rl.Digest{}
	for _, key := range keys {
		group, _ := b.group(key)
		if group.Outcome != rl.Usable {
			s.t.Errorf("slot %d is %v: %s", key.Slot, group.Outcome, group.Reason)
		}
		out[key] = group.Digest()
	}
	return out
}

// TestGroupsOnTheSimulator checks that the groups are the same whatever the endpoint does, however many workers play,
// and in whatever session.
func TestGroupsOnTheSimulator(t *testing.T) {
	sim := newSimulator(t)
	keys := append(slots(6), rl.Key{Kind: rl.Evaluate, Lineage: version0, Evaluation: "plan"})
	want := sim.digests(keys, nil, "worker-0")
	if len(want) != len(keys) || want[keys[0]] == want[keys[1]] {
		t.Fatalf("digests are %v", want)
	}
	cases := map[string]struct {
		rules   []fault.Rule
		workers []string
		during  func(b *scriptedLearner)
	}{
		"another worker": {workers: []string{"worker-1"}},
		"three workers":  {workers: []string{"worker-0", "worker-1", "worker-2"}},
		"futures are lost": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.LoseFuture, Count: 9}}},
		"samples fail": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.Fail, Category: "server", Count: 5}}},
		"answers are lost": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.DropAnswer, Count: 5}}},
		"the endpoint throttles": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.Refuse, Status: 429, RetryAfterSeconds: 0.01, Count: 5}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sim.t = t
			sim.addFaults(tc.rules...)
			defer sim.server.Faults().Clear()
			if diff := cmp.Diff(want, sim.digests(keys, tc.during, tc.workers...)); diff != "" {
				t.Errorf("digests (-undisturbed +this):\n%s", diff)
			}
		})
	}
}

// TestRestartOfTheSimulator restarts the server, which then has neither sessions nor futures. The learner makes
// another session, and the groups in progress continue in it.
func TestRestartOfTheSimulator(t *testing.T) {
	sim := newSimulator(t)
	want := sim.digests(slots(4), nil, "worker-0")
	sim.addFaults(fault.Rule{ID: "held", Op: "asample", Do: fault.Hold, Count: -1})
	got := sim.digests(slots(4), func(b *scriptedLearner) {
		eventually(t, "samples wait", func() bool { return sim.server.Faults().List()[0].Holding > 0 })
		sim.server.Restart()
		sim.server.Faults().Clear()
		session := sim.session()
		b.change(func() { b.directive.Session = session })
	}, "worker-0")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("digests (-undisturbed +this):\n%s", diff)
	}
}

// TestReplacementWorkerGetsTheSameSamples checks that a worker that takes over a group in the same session gets the
// samples for which the other worker has paid.
func TestReplacementWorkerGetsTheSameSamples(t *testing.T) {
	sim := newSimulator(t)
	place, first := newLearnerService(t), sim.board(slots(3)...)
	end := place.serve(first, 1)
	r := place.start("worker-0", sim.client, nil)
	arrive(t, first, slots(3)...)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	end()
	drawn := sim.server.Stats().SampledTokens
	second := sim.board(slots(3)...)
	second.directive.Session = first.directive.Session
	place.serve(second, 2)
	place.start("worker-1", sim.client, nil)
	arrive(t, second, slots(3)...)
	for _, key := range slots(3) {
		one, _ := first.group(key)
		other, _ := second.group(key)
		if one.Digest() != other.Digest() {
			t.Errorf("slot %d differs", key.Slot)
		}
	}
	if again := sim.server.Stats().SampledTokens - drawn; again != 0 || drawn == 0 {
		t.Errorf("%d tokens were drawn at first, %d again", drawn, again)
	}
}

// TestNumberThatWasUsedForAnotherPrompt sends another prompt under a number that is already used, as happens if an
// environment does not depend on its seed alone.
func TestNumberThatWasUsedForAnotherPrompt(t *testing.T) {
	sim := newSimulator(t)
	p := newPolicy(sim.client)
	p.worker.sessions.use(sim.session())
	p.group.lease.Load().Sampler = sim.sampler
	r := request()
	first, err := p.Sample(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.Prompt = append(r.Prompt, '!')
	second, err := p.Sample(t.Context(), r)
	if err != nil || len(second.Tokens) == 0 {
		t.Errorf("Sample = %v, %v after %v", second, err, first)
	}
}

// TestThrottledSamplesTakeTheirOwnTimeOnly checks that waiting at the endpoint's request does not count as the
// policy's time.
func TestThrottledSamplesTakeTheirOwnTimeOnly(t *testing.T) {
	sim := newSimulator(t)
	p := newPolicy(sim.client)
	p.worker.sessions.use(sim.session())
	p.group.lease.Load().Sampler = sim.sampler
	sim.addFaults(fault.Rule{Op: "asample", Do: fault.Refuse, Status: 429, RetryAfterSeconds: 1, Count: 3})
	began := time.Now()
	sample, err := p.Sample(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < 3*time.Second || sample.Took <= 0 ||
		sample.Took > waited-2500*time.Millisecond {
		t.Errorf("the sample took %v of %v", sample.Took, waited)
	}
}

// TestLostReplyToASampleIsNoted loses the reply to a post, which is then repeated. An endpoint that does not recognise
// the repeated request draws another sample, and nothing waits for the first one. A refused post leaves no such
// sample.
func TestLostReplyToASampleIsNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		rule fault.Rule
		want bool
	}{
		"a lost reply":   {fault.Rule{Op: "asample", Do: fault.DropAnswer}, true},
		"a lost request": {fault.Rule{Op: "asample", Do: fault.DropRequest}, true},
		"a refusal":      {fault.Rule{Op: "asample", Do: fault.Refuse, Status: 429}, false},
	} {
		t.Run(name, func(t *testing.T) {
			sim := newSimulator(t)
			p := newPolicy(sim.client)
			p.worker.sessions.use(sim.session())
			p.group.lease.Load().Sampler = sim.sampler
			sim.addFaults(tc.rule)
			if _, err := p.Sample(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			if got := p.group.unanswered.Load(); got != tc.want {
				t.Errorf("the group has a sample without an answer: %v, want %v", got, tc.want)
			}
		})
	}
}
