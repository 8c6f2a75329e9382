// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
)

// renewPeriod is the interval at which the worker's problems are read.
const renewPeriod = 500 * time.Millisecond

// lessor leases each of its groups once to the one worker of this process, and collects the played groups.
type lessor struct {
	leases      []exchange.Lease
	encodedPlay []byte
	session     string
	// progress prints a line.
	progress func(format string, args ...any)
	// ended receives errPlayed, or the error that ends the trial.
	ended chan error

	mu     sync.Mutex
	next   int
	groups map[rl.Key]rl.Group
}

var _ rollout.Learner = (*lessor)(nil)

func newLessor(leases []exchange.Lease, play []byte, progress func(format string, args ...any)) *lessor {
	return &lessor{
		leases: leases, encodedPlay: play, progress: progress, ended: make(chan error, 1),
		groups: map[rl.Key]rl.Group{},
	}
}

// end ends the trial; further calls do nothing.
func (l *lessor) end(err error) {
	select {
	case l.ended <- err:
	default:
	}
}

// Run implements rollout.Learner.
func (l *lessor) Run(ctx context.Context, worker exchange.Worker) error {
	worker.Hello()
	worker.HandleHello(exchange.HelloReply{Play: l.encodedPlay, Session: l.session})
	ticker := time.NewTicker(renewPeriod)
	defer ticker.Stop()
	reported := ""
	for {
		worker.HandleDirective(exchange.Directive{Credits: len(l.leases), Session: l.session, Download: true})
		if problem := problemOf(worker.Renewal()); problem != reported {
			if reported = problem; problem != "" {
				l.progress("%s; trying again", problem)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// problemOf returns the reason why a worker waits; empty if it does not wait.
func problemOf(r exchange.Renewal) string {
	unavailable := r.State.GetUnavailable()
	for _, name := range slices.Sorted(maps.Keys(unavailable)) {
		return fmt.Sprintf("environment %s is unavailable: %s", name, unavailable[name])
	}
	for _, found := range r.State.GetProblems() {
		return problem.Problem{Code: problem.Code(found.GetCode()), Evidence: found.GetEvidence()}.Message()
	}
	return ""
}

// Acquire implements rollout.Learner.
func (l *lessor) Acquire(ctx context.Context, free int) ([]exchange.Lease, error) {
	l.mu.Lock()
	from := l.next
	l.next = min(len(l.leases), from+free)
	leases := l.leases[from:l.next]
	l.mu.Unlock()
	if len(leases) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return leases, nil
}

// Submit implements rollout.Learner.
func (l *lessor) Submit(_ context.Context, group exchange.EncodedGroup) (*exchange.SubmitReply, error) {
	decoded, err := exchange.DecodeGroup(group.Message)
	if err != nil {
		l.end(err)
		return nil, err
	}
	l.mu.Lock()
	l.groups[group.Key] = decoded
	played := len(l.groups)
	l.mu.Unlock()
	l.progress("%d of %d episodes played", played, len(l.leases))
	if played == len(l.leases) {
		l.end(errPlayed)
	}
	return &exchange.SubmitReply{Status: exchange.Accepted}, nil
}

// Release implements rollout.Learner. A group that the worker cannot play ends the trial.
func (l *lessor) Release(_ context.Context, keys []rl.Key, reason string) error {
	l.mu.Lock()
	missing := slices.ContainsFunc(keys, func(key rl.Key) bool {
		_, known := l.groups[key]
		return !known
	})
	l.mu.Unlock()
	if missing {
		l.end(fmt.Errorf("an episode cannot be played (%s): --verbose shows why; check --model and --checkpoint", reason))
	}
	return nil
}

// Attempt implements rollout.Learner.
func (l *lessor) Attempt() int32 { return 1 }

// results returns the groups in the order of their slots.
func (l *lessor) results() []rl.Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.groups), func(a, b rl.Group) int { return a.Key.Compare(b.Key) })
}
