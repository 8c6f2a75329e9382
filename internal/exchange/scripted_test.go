// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// deadline bounds everything that a test waits for.
const deadline = 10 * time.Minute

// learner is a scripted Handler that records the messages that it receives.
type learner struct {
	mu           sync.Mutex
	hellos       chan HelloRequest
	reply        HelloReply
	refuse       error
	acquire      func(ctx context.Context, worker string, free int) ([]Lease, error)
	renewed      chan Renewal
	directive    Directive
	submitted    chan rl.Group
	result       SubmitStatus
	released     chan []rl.Key
	disconnected chan string
	spent        chan Spent
	ended        chan []rl.Key
}

func newLearner() *learner {
	return &learner{
		hellos: make(chan HelloRequest, 1000), renewed: make(chan Renewal, 10000),
		submitted: make(chan rl.Group, 10000), released: make(chan []rl.Key, 10), disconnected: make(chan string, 10),
		spent: make(chan Spent, 100), ended: make(chan []rl.Key, 100),
		acquire: func(ctx context.Context, _ string, _ int) ([]Lease, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
}

func (l *learner) Hello(_ context.Context, _ string, request HelloRequest) (HelloReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hellos <- request
	return l.reply, l.refuse
}

func (l *learner) Acquire(ctx context.Context, worker string, free int) ([]Lease, error) {
	return l.acquire(ctx, worker, free)
}

func (l *learner) Renew(_ string, renewal Renewal) Directive {
	select {
	case l.renewed <- renewal:
	default:
	}
	return l.Directive("")
}

func (l *learner) Directive(string) Directive {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.directive
}

func (l *learner) direct(d Directive) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.directive = d
}

func (l *learner) refuseHello(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = err
}

func (l *learner) Submit(_ string, group rl.Group, digest rl.Digest) *SubmitReply {
	if digest != group.Digest() {
		panic("the digest is not the group's")
	}
	l.submitted <- group
	return &SubmitReply{Status: l.result}
}

func (l *learner) Release(_ string, keys []rl.Key, _ string) { l.released <- keys }

func (l *learner) Disconnected(worker string) {
	select {
	case l.disconnected <- worker:
	default:
	}
}

func (l *learner) Report(worker string, spent Spent, ended []rl.Key) {
	select {
	case l.spent <- spent:
		l.ended <- ended
	default:
	}
}

// worker is a scripted Attendant that records the messages that it receives.
type worker struct {
	hello      HelloRequest
	renewal    Renewal
	replies    chan HelloReply
	directives chan Directive
}

func newWorker() *worker {
	return &worker{replies: make(chan HelloReply, 1000), directives: make(chan Directive, 10000)}
}

func (w *worker) Hello() HelloRequest          { return w.hello }
func (w *worker) HandleHello(reply HelloReply) { w.replies <- reply }
func (w *worker) Renewal() Renewal             { return w.renewal }
func (w *worker) HandleDirective(d Directive) {
	select {
	case w.directives <- d:
	default:
	}
}

// take waits for a value.
func take[T any](t testing.TB, what string, values <-chan T) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(deadline):
		t.Fatalf("no %s came", what)
		panic("unreachable")
	}
}

// takeUntil waits for a value for which wanted returns true.
func takeUntil[T any](t testing.TB, what string, values <-chan T, wanted func(T) bool) T {
	t.Helper()
	end := time.After(deadline)
	for {
		select {
		case v := <-values:
			if wanted(v) {
				return v
			}
		case <-end:
			t.Fatalf("no %s came", what)
			panic("unreachable")
		}
	}
}

func credentialsOf(t testing.TB, uid string) contract.Credentials {
	t.Helper()
	l, err := contract.DeriveCredentials([]byte("a manager key of at least 32 bytes"), uid)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// epochOf returns an epoch of the run that all tests play.
func epochOf(attempt int32) *Epoch {
	return &Epoch{RunUid: "uid-1", SpecDigest: "spec-1", Attempt: attempt, Version: contract.FormatVersion}
}

// serving is a server on loopback.
type serving struct {
	*Server
	address string
	fenced  chan int32
	stop    func()
}

// serve starts a server. An empty address means any port. The server stops with the test at the latest.
func serve(t testing.TB, address string, epoch *Epoch, handler Handler, timing Timing) *serving {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	fenced := make(chan int32, 10)
	server, err := NewServer(ServerConfig{
		Epoch: epoch, Credentials: credentialsOf(t, epoch.RunUid), Handler: handler, Timing: timing,
		Fenced: func(higher int32) { fenced <- higher },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return &serving{Server: server, address: listener.Addr().String(), fenced: fenced, stop: stop}
}

// running is a client whose Attend runs.
type running struct {
	*Client
	worker *worker
	ended  chan error
	stop   func()
}

func clientConfig(t testing.TB, address string) ClientConfig {
	epoch := epochOf(0)
	return ClientConfig{
		Address: address, Credentials: credentialsOf(t, epoch.RunUid), RunUID: epoch.RunUid, SpecDigest: epoch.SpecDigest,
		Worker: "worker-0", Renew: 20 * time.Millisecond,
	}
}

func runClient(t testing.TB, config ClientConfig, w *worker) *running {
	t.Helper()
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &running{Client: client, worker: w, ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.ended <- client.Run(ctx, w)
	}()
	a.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	t.Cleanup(a.stop)
	return a
}

// service is a name that points to one learner or another.
type service struct {
	address atomic.Value
	dials   atomic.Int32
}

func pointingTo(s *serving) *service {
	var name service
	name.pointTo(s)
	return &name
}

func (s *service) pointTo(target *serving) { s.address.Store(target.address) }

func (s *service) dial(ctx context.Context, _ string) (net.Conn, error) {
	s.dials.Add(1)
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", s.address.Load().(string))
}

func exampleKey(slot int64) rl.Key {
	return rl.Key{Kind: rl.Train, Slot: slot, Lineage: rl.Genesis("spec-1")}
}

// encodedGroup is exampleGroup, encoded.
func encodedGroup(slot int64, members, tokens int) EncodedGroup {
	return encode(exampleGroup(slot, members, tokens))
}

func encode(group rl.Group) EncodedGroup {
	encoded, err := EncodeGroup(group)
	if err != nil {
		panic(err)
	}
	return encoded
}

// rolesGroup is a valid group whose members have two roles and rewards of steps.
func rolesGroup(slot int64) rl.Group {
	g := exampleGroup(slot, 3, 9)
	for i := range g.Members {
		solver := &g.Members[i].Trajectories[0]
		solver.Role, solver.Key, solver.StepRewards = "solver", "solver 1", []float64{0.25, float64(i) / 4}
		solver.Segments[0].Steps = []rl.Step{{Index: 0, End: 4}, {Index: 1, End: 9}}
		g.Members[i].Trajectories = append(g.Members[i].Trajectories, rl.Trajectory{
			Role: "judge", Key: "judge", Reward: 1, StepRewards: []float64{1}, StopReason: "length",
			Segments: []rl.Segment{{Turn: 2, Tokens: []int32{3, 4}, Actions: []bool{false, true}, Logprobs: []float32{0, -1},
				ReferenceLogprobs: []float32{-3, -2}, Steps: []rl.Step{{Index: 0, End: 2}}}},
		})
	}
	g.Members[1] = rl.Member{Index: 1, Outcome: rl.JudgeFault, Retries: 2}
	return g
}

// exampleGroup is a valid group of members with the given number of tokens.
func exampleGroup(slot int64, members, tokens int) rl.Group {
	g := rl.Group{Key: exampleKey(slot), Environment: "sums", PromptTokens: 12, SampledTokens: int64(members * tokens)}
	for m := range members {
		s := rl.Segment{
			Turn: 1, Tokens: make([]int32, tokens), Actions: make([]bool, tokens), Logprobs: make([]float32, tokens),
		}
		for i := range tokens {
			s.Tokens[i] = int32(i * (m + 7) % 32000)
			if i >= tokens/4 && i > 0 {
				s.Actions[i], s.Logprobs[i] = true, -float32(i%13)/8
			}
		}
		g.Members = append(g.Members, rl.Member{
			Index: m, Reward: float64(m%2) / 2, Parts: map[string]float64{"format": 1}, StopReason: "stop",
			Metrics: map[string]float64{"correct": float64(m % 2)}, Turns: 2,
			Trajectories: []rl.Trajectory{{Reward: float64(m%2) / 2, StopReason: "stop", Segments: []rl.Segment{s}}},
			PromptTokens: 3, SampledTokens: int64(tokens), Retries: m % 3,
		})
	}
	return g
}
