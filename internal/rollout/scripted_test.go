// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// deadline bounds each wait of a test.
	deadline = 10 * time.Minute
	model    = "tinkersim/byte-136k"
	runUID   = "0b5f0c0e-0000-4000-8000-000000000001"
)

var (
	version0 = rl.Genesis("spec")
	digest   = fmt.Sprintf("%064d", 7)
)

func trainKey(slot int64) rl.Key { return rl.Key{Slot: slot, Lineage: version0} }

// play returns the settings of the scripted learner: groups of four sums.
func play() contract.Play {
	env := contract.Environment{
		Name: "arithmetic",
		Definition: contract.Definition{Dataset: &contract.Dataset{Dataset: environment.Dataset{
			Arithmetic: &environment.ArithmeticData{MaxOperand: 99}}},
			Reward: &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}}},
		GroupSize: 4, MinMembers: 2,
		Sampling: playing.Sampling{MaxTokens: 16, Temperature: new(1.0), TopP: 1},
		Reward:   playing.EpisodeReward{Reduction: "Sum"},
	}
	repeated := env
	repeated.GroupSize, repeated.MinMembers = 2, 1
	return contract.Play{
		Version: contract.FormatVersion,
		Model:   contract.Model{Name: model}, Environments: []contract.Environment{env},
		Evaluations: map[string][]contract.Environment{"plan": {repeated}}, Concurrency: 64,
	}
}

func lease(key rl.Key) exchange.Lease {
	l := exchange.Lease{
		Key: key, Environment: "arithmetic", Split: "train", Task: key.Slot, GroupSize: 4, MinMembers: 2,
		Sampler: "tinker://run/sampler_weights/v0", Seed: 42,
	}
	if key.Kind == rl.Evaluate {
		l.GroupSize, l.MinMembers, l.Split = 2, 1, "test"
	}
	l.SamplingSession = rl.SamplingSession(key.Kind, key.Lineage, key.Evaluation)
	return l
}

// scriptedLearner is a learner that leases the groups that a test adds, and keeps the groups that workers submit.
type scriptedLearner struct {
	changes wait.Signal

	mu          sync.Mutex
	play        contract.Play
	directive   exchange.Directive
	open        []exchange.Lease
	leased      map[rl.Key]exchange.Lease
	groups      map[rl.Key]rl.Group
	submits     map[rl.Key]int
	hellos      []exchange.HelloRequest
	free        []int
	released    map[rl.Key]string
	wantsStored bool
	keepsLease  bool
	throttled   int
	refuses     map[rl.Key]string
}

func newScriptedLearner(keys ...rl.Key) *scriptedLearner {
	b := &scriptedLearner{
		play: play(), leased: map[rl.Key]exchange.Lease{}, groups: map[rl.Key]rl.Group{}, submits: map[rl.Key]int{},
		released: map[rl.Key]string{}, refuses: map[rl.Key]string{}, wantsStored: true, keepsLease: true,
	}
	b.directive = exchange.Directive{Credits: 64, Session: "session-1"}
	b.put(keys...)
	return b
}

// put adds leases.
func (b *scriptedLearner) put(keys ...rl.Key) {
	b.change(func() {
		for _, key := range keys {
			b.open = append(b.open, lease(key))
		}
	})
}

// change changes the learner, and wakes everything that waits for a change.
func (b *scriptedLearner) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	b.changes.Notify()
}

func (b *scriptedLearner) Hello(_ context.Context, _ string,
	request exchange.HelloRequest) (exchange.HelloReply, error) {
	encoded, err := contract.EncodePlay(see(b, func() contract.Play { return b.play }))
	if err != nil {
		return exchange.HelloReply{}, err
	}
	reply := exchange.HelloReply{Play: encoded}
	b.change(func() {
		reply.Session, reply.CoveredIndex = b.directive.Session, b.directive.CoveredIndex
		b.hellos = append(b.hellos, request)
		for _, h := range request.Stored {
			if _, ok := b.groups[h.Key]; !ok && b.wantsStored {
				reply.Wanted = append(reply.Wanted, h.Key)
			}
		}
		for _, key := range request.Playing {
			if b.keepsLease {
				b.leased[key] = lease(key)
				reply.Keep = append(reply.Keep, lease(key))
			}
		}
	})
	return reply, nil
}

func (b *scriptedLearner) Acquire(ctx context.Context, _ string, free int) ([]exchange.Lease, error) {
	b.change(func() { b.free = append(b.free, free) })
	for {
		changed := b.changes.Changed()
		if leases := b.grant(free); len(leases) > 0 {
			return leases, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *scriptedLearner) grant(free int) (leases []exchange.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.open) > 0 && b.open[0].GroupSize <= free {
		l := b.open[0]
		b.open = b.open[1:]
		free -= l.GroupSize
		b.leased[l.Key] = l
		leases = append(leases, l)
	}
	return leases
}

func (b *scriptedLearner) Renew(_ string, renewal exchange.Renewal) exchange.Directive {
	b.change(func() { b.throttled += int(renewal.State.GetThrottled()) })
	return b.Directive("")
}

func (b *scriptedLearner) Directive(string) exchange.Directive {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.directive
}

func (b *scriptedLearner) Submit(_ string, group rl.Group, _ rl.Digest) *exchange.SubmitReply {
	reply := &exchange.SubmitReply{Status: exchange.Accepted}
	b.change(func() {
		b.submits[group.Key]++
		field, refused := b.refuses[group.Key]
		switch _, ok := b.groups[group.Key]; {
		case refused && group.Outcome == rl.Usable:
			reply = &exchange.SubmitReply{Status: exchange.Invalid, Field: field}
			return
		case ok:
			reply.Status = exchange.Duplicate
		}
		b.groups[group.Key] = group
		delete(b.leased, group.Key)
	})
	return reply
}

func (b *scriptedLearner) Disconnected(string) {}

func (b *scriptedLearner) Report(string, exchange.Spent, []rl.Key) {}

func (b *scriptedLearner) Release(_ string, keys []rl.Key, reason string) {
	b.change(func() {
		for _, key := range keys {
			b.released[key] = reason
			if reason == exchange.NotPlayed { // the lease crossed a Hello, and is given again
				b.open = append(b.open, b.leased[key])
			}
		}
	})
}

// group returns the submitted group of a key.
func (b *scriptedLearner) group(key rl.Key) (rl.Group, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	group, ok := b.groups[key]
	return group, ok
}

// see reads fields of the learner under its lock.
func see[T any](b *scriptedLearner, look func() T) T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return look()
}

// learnerService is the Service to which workers connect. It forwards to the learner that was started last.
type learnerService struct {
	t           *testing.T
	credentials contract.Credentials
	address     atomic.Value
	// fenced counts the learners that have received a higher attempt than their own.
	fenced atomic.Int32
}

func newLearnerService(t *testing.T) *learnerService {
	t.Helper()
	l, err := contract.DeriveCredentials(make([]byte, 32), runUID)
	if err != nil {
		t.Fatal(err)
	}
	s := &learnerService{t: t, credentials: l}
	s.address.Store("127.0.0.1:1")
	return s
}

// serve starts a learner of an attempt, to which the Service points from now on. end stops the learner.
func (s *learnerService) serve(b *scriptedLearner, attempt int32) (end func()) {
	s.t.Helper()
	server, err := exchange.NewServer(exchange.ServerConfig{
		Epoch: &exchange.Epoch{RunUid: runUID, SpecDigest: digest, Attempt: attempt}, Credentials: s.credentials, Handler: b,
		Fenced: func(int32) { s.fenced.Add(1) }, Logger: slog.New(slog.DiscardHandler),
		Timing: exchange.Timing{Direct: 20 * time.Millisecond, Drain: 10 * time.Millisecond},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	s.address.Store(listener.Addr().String())
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Serve: %v", err)
		}
	})
	s.t.Cleanup(end)
	return end
}

// running is a worker in a goroutine.
type running struct {
	worker *Worker
	client *exchange.Client
	store  *groupstore.Store
	stop   func() error
	// finished is closed when Run has returned.
	finished chan struct{}
}

func (r *running) ended() bool {
	select {
	case <-r.finished:
		return true
	default:
		return false
	}
}

// start runs a worker; its stop ends it as SIGTERM does and returns the error of Run.
func (s *learnerService) start(name string, api Endpoint, change func(*Config)) *running {
	s.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	learner, err := exchange.NewClient(exchange.ClientConfig{
		Address: "learner:7443", Credentials: s.credentials, RunUID: runUID, SpecDigest: digest, Worker: name,
		Renew: 20 * time.Millisecond,
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.address.Load().(string))
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	config := Config{Learner: learner, Endpoint: api, Pressure: &Pressure{}, Grace: 50 * time.Millisecond, Logger: logger}
	config.Groups, err = groupstore.Open(groupstore.Config{MemoryBytes: 1 << 20, Logger: logger})
	if err != nil {
		s.t.Fatal(err)
	}
	if change != nil {
		change(&config)
	}
	r := &running{worker: New(config), client: learner, store: config.Groups}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r.finished = make(chan struct{})
	go func() {
		defer close(r.finished)
		done <- r.worker.Run(ctx)
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		defer learner.Close()
		select {
		case err := <-done:
			return err
		case <-time.After(deadline):
			return fmt.Errorf("the worker did not end")
		}
	})
	s.t.Cleanup(func() { _ = r.stop() })
	return r
}

// stored returns the keys of the stored groups.
func (r *running) stored() []rl.Key {
	var keys []rl.Key
	for _, h := range r.store.List() {
		keys = append(keys, h.Key)
	}
	return keys
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !so(); {
		if time.Now().After(end) {
			t.Fatalf("timed out before this was true: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// arrive waits until the groups were submitted to the learner.
func arrive(t *testing.T, b *scriptedLearner, keys ...rl.Key) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d groups arrive", len(keys)), func() bool {
		for _, key := range keys {
			if _, ok := b.group(key); !ok {
				return false
			}
		}
		return true
	})
}

func slots(n int64) []rl.Key {
	var keys []rl.Key
	for slot := range n {
		keys = append(keys, trainKey(slot))
	}
	return keys
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// heartbeats is an endpoint that records which sessions workers keep alive.
type heartbeats struct {
	*endpoint
	mu      sync.Mutex
	beating map[string]int
	lost    func(error)
}

func (b *heartbeats) KeepAlive(ctx context.Context, session string, lost func(error)) {
	b.add(session, 1, lost)
	<-ctx.Done()
	b.add(session, -1, lost)
}

func (b *heartbeats) add(session string, n int, lost func(error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beating[session] += n
	b.lost = lost
}

func (b *heartbeats) now() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.beating)
}

// lose reports that the session that was kept alive last has expired.
func (b *heartbeats) lose() {
	b.mu.Lock()
	lost := b.lost
	b.mu.Unlock()
	lost(failureOf(tinker.CategoryNotFound))
}
