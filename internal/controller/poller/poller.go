// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package poller polls learners in the background, so that no reconcile ever waits for a pod. It posts a heartbeat to
// each learner that it tracks, keeps the newest reply, and sends an event for a run whose replies changed; if only
// figures of steps changed, at most at every third heartbeat. The controller interprets the replies.
package poller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// Target is a learner pod to ask.
type Target struct {
	Pod types.UID
	// Address is host:port.
	Address string
	// WorkerToken says that an earlier manager made the learner without a token for the manager: it accepts the workers'
	// token.
	WorkerToken bool
	Request     contract.HeartbeatRequest
}

// Result is the result of a learner's heartbeats.
type Result struct {
	// Reply is the newest reply; nil before the first.
	Reply *contract.HeartbeatReply
	// At is the time at which Reply arrived.
	At time.Time
	// Err is the error of the newest heartbeat; nil if it had a reply.
	Err error
	// Since is the time of this manager's first heartbeat to the learner; the zero time before that.
	Since time.Time
	// Excess describes the parts of the newest reply that the manager did not keep; empty if there are none, as with the
	// project's own learner.
	Excess string
}

// Unanswered returns the time for which heartbeats of this manager have had no reply: since the newest reply, or since
// the first heartbeat. It is 0 before the first heartbeat, since a learner that was never asked is not silent.
func (r Result) Unanswered(now time.Time) time.Duration {
	if r.Since.IsZero() {
		return 0
	}
	from := r.Since
	if r.Reply != nil && r.At.After(from) {
		from = r.At
	}
	return now.Sub(from)
}

// Fresh reports whether the reply is new enough to act on.
func (r Result) Fresh(now time.Time) bool {
	return r.Reply != nil && now.Sub(r.At) <= FreshFor
}

// FreshFor is the time for which a reply is valid.
const FreshFor = 15 * time.Second

// Poster posts one heartbeat.
type Poster func(ctx context.Context, target Target) (contract.HeartbeatReply, error)

// Config configures a Poller.
type Config struct {
	// Every is the time between two heartbeats to the same learner.
	Every time.Duration
	// Timeout limits one heartbeat.
	Timeout time.Duration
	Post    Poster
	Now     func() time.Time
}

// Poller is a Runnable of the manager. Its methods are safe for concurrent use.
type Poller struct {
	config Config
	events chan event.GenericEvent
	wake   chan struct{}

	mu       sync.Mutex
	runs     map[types.NamespacedName]map[types.UID]Target
	results  map[types.UID]Result
	inFlight map[types.UID]bool
	// sent is the newest request that each learner was sent.
	sent map[types.UID]Target
	// pending has the heartbeats of each learner since the newest event of its run.
	pending map[types.UID]pending
}

// pending has the heartbeats of a learner since the newest event of its run.
type pending struct {
	// heartbeats counts the heartbeats that have ended, with or without a reply.
	heartbeats int
	// figures says that a reply had other figures of steps than the one before.
	figures bool
}

// figuresEvery is the number of heartbeats from one event to the next if only figures of steps change, which a status
// shows less often anyway. With an event for each reply, 1,000 runs would be 500 reconciles a second.
const figuresEvery = 3

// New returns a Poller that tracks no learner yet.
func New(config Config) *Poller {
	return &Poller{
		config:   config,
		events:   make(chan event.GenericEvent, 1024),
		wake:     make(chan struct{}, 1),
		runs:     map[types.NamespacedName]map[types.UID]Target{},
		results:  map[types.UID]Result{},
		inFlight: map[types.UID]bool{},
		sent:     map[types.UID]Target{},
		pending:  map[types.UID]pending{},
	}
}

// Events returns the runs whose replies changed; the objects have only a name.
func (p *Poller) Events() <-chan event.GenericEvent { return p.events }

// Track replaces the learners of a run. It polls a learner at once if the learner is new or has a new request.
func (p *Poller) Track(run types.NamespacedName, targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.runs[run]
	after := make(map[types.UID]Target, len(targets))
	changed := false
	for _, target := range targets {
		after[target.Pod] = target
		changed = changed || before[target.Pod] != target
	}
	for pod := range before {
		if _, kept := after[pod]; !kept {
			delete(p.results, pod)
			delete(p.sent, pod)
			delete(p.pending, pod)
		}
	}
	p.runs[run] = after
	if len(after) == 0 {
		delete(p.runs, run)
	}
	if !changed {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Latest returns the latest result of a learner.
func (p *Poller) Latest(pod types.UID) Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.results[pod]
}

// Start polls until the context ends; the manager calls it on the leader alone.
func (p *Poller) Start(ctx context.Context) error {
	var posts sync.WaitGroup
	defer posts.Wait()
	ticker := time.NewTicker(p.config.Every)
	defer ticker.Stop()
	for everyone := false; ; {
		for run, targets := range p.due(everyone) {
			for _, target := range targets {
				posts.Go(func() { p.poll(ctx, run, target) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			everyone = true
		case <-p.wake:
			everyone = false
		}
	}
}

// due returns the learners that have a new request, or all learners, except the ones whose heartbeat is in flight, and
// marks them.
func (p *Poller) due(everyone bool) map[types.NamespacedName][]Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[types.NamespacedName][]Target{}
	for run, targets := range p.runs {
		for target := range maps.Values(targets) {
			if !p.inFlight[target.Pod] && (everyone || p.sent[target.Pod] != target) {
				p.inFlight[target.Pod], p.sent[target.Pod] = true, target
				p.markAsked(target.Pod)
				due[run] = append(due[run], target)
			}
		}
	}
	return due
}

// markAsked remembers when a learner was first sent a heartbeat.
func (p *Poller) markAsked(pod types.UID) {
	result := p.results[pod]
	if result.Since.IsZero() {
		result.Since = p.config.Now()
		p.results[pod] = result
	}
}

func (p *Poller) poll(ctx context.Context, run types.NamespacedName, target Target) {
	bounded, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	reply, err := p.config.Post(bounded, target)
	if p.record(run, target, reply, err) {
		p.notify(ctx, run)
	}
}

// record stores a result and reports whether the run is to be reconciled. The reader of a reply checks whether it
// belongs to the pod's run and attempt.
func (p *Poller) record(run types.NamespacedName, target Target, reply contract.HeartbeatReply, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inFlight, target.Pod)
	if _, tracked := p.runs[run][target.Pod]; !tracked {
		return false
	}
	before := p.results[target.Pod]
	after := Result{Reply: before.Reply, At: before.At, Err: err, Since: before.Since, Excess: before.Excess}
	if err == nil {
		kept, excess := reply.Bounded()
		after.Reply, after.At, after.Excess = &kept, p.config.Now(), excess
		if excess != "" && excess != before.Excess {
			log.Log.Info("a learner replies with more than the manager keeps", "run", run, "pod", target.Pod, "leftOut", excess)
		}
	}
	p.results[target.Pod] = after
	since := p.pending[target.Pod]
	since.heartbeats++
	since.figures = since.figures || figuresChanged(before, after)
	notify := changed(before, after) || since.figures && since.heartbeats >= figuresEvery
	if notify {
		since = pending{}
	}
	p.pending[target.Pod] = since
	return notify
}

// changed reports whether a reconcile would see another result than before, apart from figures of steps.
func changed(before, after Result) bool {
	if (before.Err == nil) != (after.Err == nil) || (before.Reply == nil) != (after.Reply == nil) {
		return true
	}
	if after.Reply == nil || after.Err != nil {
		return false
	}
	return !slices.Equal(before.Reply.Problems, after.Reply.Problems) ||
		!slices.Equal(before.Reply.Unavailable, after.Reply.Unavailable) ||
		before.Reply.Attempt != after.Reply.Attempt ||
		before.Reply.Progress.Phase != after.Reply.Progress.Phase ||
		newestRecord(before.Reply) != newestRecord(after.Reply) && hasMoreRecords(after.Reply)
}

// figuresChanged reports whether a learner that replied before has committed steps.
func figuresChanged(before, after Result) bool {
	if before.Reply == nil || after.Reply == nil {
		return false
	}
	return before.Reply.Sequence != after.Reply.Sequence || newestRecord(before.Reply) != newestRecord(after.Reply)
}

// hasMoreRecords reports whether a learner has further records. Earlier versions do not say so.
func hasMoreRecords(reply *contract.HeartbeatReply) bool {
	return reply.MoreRecords || len(reply.Records) == contract.MaxRecords
}

func newestRecord(reply *contract.HeartbeatReply) int64 {
	if n := len(reply.Records); n > 0 {
		return reply.Records[n-1].Number
	}
	return 0
}

func (p *Poller) notify(ctx context.Context, run types.NamespacedName) {
	object := &v1alpha1.TrainingRun{}
	object.Namespace, object.Name = run.Namespace, run.Name
	select {
	case p.events <- event.GenericEvent{Object: object}:
	case <-ctx.Done():
	}
}
