// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// fakeWorker is a minimal rollout worker: it samples "a+b=" for a reward that depends on the sampled
// tokens alone, stores finished groups, and can be made to misbehave. It speaks the real protocol to the real
// learner and samples from the real simulator.
type fakeWorker struct {
	fixture *fixture
	name    string
	client  *exchange.Client
	// endpoint, meter and process belong to this worker alone.
	endpoint *client.Client
	meter    *client.Meter
	process  string
	sequence int64
	cancel   context.CancelFunc
	done     chan struct{}
	// ended is closed when the worker has ended and does not connect again.
	ended    chan struct{}
	behavior behavior

	mu               sync.Mutex
	stored           map[rl.Key]rl.Group
	wanted           map[rl.Key]bool
	sampling         map[rl.Key]context.CancelFunc
	accounts         map[rl.Key]*client.Account
	covered          map[rl.Key]bool
	kept             map[rl.Key]exchange.Lease // given by a new learner for groups in progress
	session          string
	shortSeeds       bool
	samplingSessions map[string]string
	finished         map[rl.Key]int
	leased           map[rl.Key]bool
}

// behavior describes how a worker deviates from a normal worker. The zero value means a normal worker.
type behavior struct {
	// outcome returns the outcome of a slot. The worker samples the slot if the outcome is Usable, and stores a tombstone
	// otherwise.
	outcome func(slot int64) rl.Outcome
	// change returns the group that is stored in place of g.
	change func(g rl.Group) rl.Group
	// delay returns the time by which the sampling of a slot is delayed.
	delay func(slot int64) time.Duration
	// wait is called before a slot is sampled.
	wait func(ctx context.Context, slot int64)
	// blockEvaluation keeps the worker from finishing a group of an evaluation.
	blockEvaluation bool
	// delayEvaluation delays the sampling of groups of evaluations until it is closed; nil means no delay.
	delayEvaluation <-chan struct{}
	// leased receives each lease, in the order in which they are granted, before its group is sampled.
	leased func(lease exchange.Lease)
	// room is the number of episodes that fit; 64 unless given.
	room int
	// renew is the interval of the worker's reports; 50 ms unless given.
	renew time.Duration
	// dial opens the connection to the learner; nil means fixture.dial.
	dial func(ctx context.Context, address string) (net.Conn, error)
}

// startWorker starts a fake worker.
func (w *fixture) startWorker(name string, b behavior) *fakeWorker {
	w.t.Helper()
	if b.room == 0 {
		b.room = 64
	}
	if b.dial == nil {
		b.dial = w.dial
	}
	p := &fakeWorker{
		fixture: w, name: name, behavior: b, done: make(chan struct{}), ended: make(chan struct{}),
		stored: map[rl.Key]rl.Group{}, wanted: map[rl.Key]bool{}, finished: map[rl.Key]int{},
		leased:   map[rl.Key]bool{},
		sampling: map[rl.Key]context.CancelFunc{}, kept: map[rl.Key]exchange.Lease{},
		accounts: map[rl.Key]*client.Account{}, covered: map[rl.Key]bool{},
		samplingSessions: map[string]string{},
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	p.cancel, p.process = cancel, rand.Text()
	p.meter = client.NewMeter(client.MeterConfig{Lifetime: ctx})
	config := client.Config{BaseURL: cmp.Or(w.front, w.url), APIKey: cmp.Or(w.key, apiKey), Meter: p.meter}
	if w.front != "" {
		config.HTTP = w.http
	}
	var err error
	if p.endpoint, err = client.New(config); err != nil {
		w.t.Fatal(err)
	}
	p.client, err = exchange.NewClient(exchange.ClientConfig{
		Address: w.file.LearnerAddress, Credentials: w.credentials, RunUID: w.file.Run.UID, SpecDigest: w.file.SpecDigest,
		Version: w.file.Version, Worker: name, Spent: p.spent, Logger: w.logger(),
		Renew: cmp.Or(b.renew, 50*time.Millisecond), Dial: b.dial,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer close(p.ended)
		_ = p.client.Run(ctx, p)
	})
	tasks.Go(func() { p.acquire(ctx, &tasks) })
	tasks.Go(func() { p.submit(ctx) })
	go func() {
		tasks.Wait()
		_ = p.client.Close()
		close(p.done)
	}()
	w.t.Cleanup(p.kill)
	w.workers = append(w.workers, p)
	return p
}

// worker returns the fake worker with a name.
func (w *fixture) worker(name string) *fakeWorker {
	for _, p := range w.workers {
		if p.name == name {
			return p
		}
	}
	w.t.Fatalf("no worker is called %s", name)
	return nil
}

// kill ends the worker and drops all that it stored.
func (p *fakeWorker) kill() {
	p.cancel()
	<-p.done
}

func (p *fakeWorker) Hello() exchange.HelloRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	var request exchange.HelloRequest
	request.Spent, request.Groups = p.spentLocked()
	for key, group := range p.stored {
		request.Stored = append(request.Stored, exchange.StoredGroup{Key: key, Outcome: group.Outcome})
	}
	for key := range p.sampling {
		request.Playing = append(request.Playing, key)
	}
	return request
}

func (p *fakeWorker) HandleHello(reply exchange.HelloReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = reply.Session
	if play, err := contract.DecodePlay(reply.Play); err == nil {
		p.shortSeeds = play.ShortSeeds
	}
	p.want(reply.Wanted)
	kept := map[rl.Key]bool{}
	for _, lease := range reply.Keep {
		kept[lease.Key] = true
		p.kept[lease.Key] = lease
	}
	for key, stop := range p.sampling {
		if !kept[key] {
			stop()
		}
	}
}

func (p *fakeWorker) Renewal() exchange.Renewal {
	p.mu.Lock()
	defer p.mu.Unlock()
	var renewal exchange.Renewal
	renewal.Spent, renewal.Groups = p.spentLocked()
	for key, account := range p.accounts {
		if p.sampling[key] != nil || p.wanted[key] { // until the group is submitted
			_, each := p.meter.Read(account)
			renewal.Progress = append(renewal.Progress, exchange.Progress{
				Key: key, Next: exchange.UnreportedRequests * 4 * each[0].Largest,
			})
		}
	}
	for key := range p.covered {
		delete(p.accounts, key)
	}
	clear(p.covered)
	return renewal
}

func (p *fakeWorker) spent() exchange.Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	spent, _ := p.spentLocked()
	return spent
}

// spentLocked returns the worker's total spending, and its spending for each group that no state covers. The lock is
// held.
func (p *fakeWorker) spentLocked() (exchange.Spent, []exchange.GroupSpent) {
	keys := slices.Collect(maps.Keys(p.accounts))
	accounts := make([]*client.Account, len(keys))
	for i, key := range keys {
		accounts[i] = p.accounts[key]
	}
	used, each := p.meter.Read(accounts...)
	p.sequence++
	spent := exchange.Spent{Process: p.process, Used: used, Sequence: p.sequence}
	groups := make([]exchange.GroupSpent, len(keys))
	for i, account := range each {
		groups[i] = exchange.GroupSpent{Key: keys[i], Used: account.Used}
		spent.Uncovered = spent.Uncovered.Add(account.Used)
	}
	return spent, groups
}

func (p *fakeWorker) HandleDirective(d exchange.Directive) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = d.Session
	for _, key := range d.Revoked {
		if stop := p.sampling[key]; stop != nil {
			stop()
		}
	}
	for _, c := range d.Rejected {
		if group, ok := p.stored[c.Key]; ok {
			p.stored[c.Key] = group.Tombstone(c.Outcome, c.Reason)
		}
	}
	covered := func(key rl.Key) bool {
		return key.Kind == rl.Train && key.Slot < d.CoveredIndex ||
			slices.Contains(d.CoveredEvaluations, exchange.Evaluation{Digest: key.Evaluation, Lineage: key.Lineage})
	}
	maps.DeleteFunc(p.stored, func(key rl.Key, _ rl.Group) bool { return covered(key) })
	for key := range p.accounts {
		if covered(key) {
			p.covered[key] = true // until Renewal has reported its usage
		}
	}
	p.want(d.Wanted)
}

// want records the groups that submit is to send. The lock is held.
func (p *fakeWorker) want(keys []rl.Key) {
	for _, key := range keys {
		if _, ok := p.stored[key]; ok {
			p.wanted[key] = true
		}
	}
}

func (p *fakeWorker) acquire(ctx context.Context, tasks *sync.WaitGroup) {
	for ctx.Err() == nil {
		p.mu.Lock()
		free := p.behavior.room - 4*len(p.sampling)
		p.mu.Unlock()
		if free <= 0 {
			pauseFor(ctx, 5*time.Millisecond)
			continue
		}
		leases, err := p.client.Acquire(ctx, free)
		if err != nil {
			pauseFor(ctx, 5*time.Millisecond)
			continue
		}
		for _, lease := range leases {
			if p.behavior.leased != nil {
				p.behavior.leased(lease)
			}
			if play, ok := p.start(ctx, lease.Key); ok {
				tasks.Go(func() { p.sampleAndStore(play, lease) })
			}
		}
	}
}

// start reports whether a group is to be sampled, and returns the context for it. Like a real worker, it sends a
// stored group instead, which was finished after the Hello that the learner has received.
func (p *fakeWorker) start(ctx context.Context, key rl.Key) (play context.Context, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leased[key] = true
	if _, stored := p.stored[key]; stored {
		p.wanted[key] = true
		return nil, false
	}
	play, p.sampling[key] = context.WithCancel(ctx)
	delete(p.covered, key)
	if p.accounts[key] == nil {
		p.accounts[key] = &client.Account{}
	}
	return client.WithAccount(play, p.accounts[key]), true
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// sampleAndStore samples the group of a lease and stores it.
func (p *fakeWorker) sampleAndStore(ctx context.Context, lease exchange.Lease) {
	group, err := p.group(ctx, lease)
	p.mu.Lock()
	defer p.mu.Unlock()
	stop := p.sampling[lease.Key]
	delete(p.sampling, lease.Key)
	delete(p.kept, lease.Key)
	if stop != nil {
		stop()
	}
	if client.CategoryFrom(err) == tinker.CategoryNotFound {
		go func() { _ = p.client.Release(p.fixture.t.Context(), []rl.Key{lease.Key}, "policy_gone") }()
	}
	if err != nil {
		return
	}
	if p.behavior.change != nil {
		group = p.behavior.change(group)
	}
	p.stored[lease.Key] = group
	p.wanted[lease.Key] = true
}

// submit sends the wanted groups.
func (p *fakeWorker) submit(ctx context.Context) {
	for ctx.Err() == nil {
		group, ok := p.next()
		if !ok {
			pauseFor(ctx, 2*time.Millisecond)
			continue
		}
		encoded, err := exchange.EncodeGroup(group)
		if err == nil {
			_, err = p.client.Submit(ctx, encoded)
		}
		if err != nil {
			pauseFor(ctx, 5*time.Millisecond)
			continue
		}
		p.mu.Lock()
		delete(p.wanted, group.Key)
		p.mu.Unlock()
	}
}

func (p *fakeWorker) next() (rl.Group, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.wanted {
		if group, ok := p.stored[key]; ok {
			return group, true
		}
		delete(p.wanted, key)
	}
	return rl.Group{}, false
}

// sampledTwice counts the groups that this worker sampled more than once.
func (p *fakeWorker) sampledTwice() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, times := range p.finished {
		if times > 1 {
			n++
		}
	}
	return n
}

// trained counts the groups that this worker sampled to train on.
func (p *fakeWorker) trained() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int64(0)
	for key := range p.finished {
		if key.Evaluation == "" {
			n++
		}
	}
	return n
}

// checkSampledOnce fails if a group was sampled more than once, by one worker or by two.
func (w *fixture) checkSampledOnce() {
	w.t.Helper()
	times := map[rl.Key][]string{}
	for _, p := range w.workers {
		p.mu.Lock()
		for key, n := range p.finished {
			times[key] = append(times[key], slices.Repeat([]string{p.name}, n)...)
		}
		p.mu.Unlock()
	}
	for key, by := range times {
		if len(by) > 1 {
			w.t.Errorf("group %+v was sampled by %v", key, by)
		}
	}
}
