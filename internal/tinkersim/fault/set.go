// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrNotFound says that there is no rule of that id.
var ErrNotFound = errors.New("finding a fault by its id")

// Set holds the rules that are in force. It is safe for concurrent use.
type Set struct {
	now func() time.Time

	mu    sync.Mutex
	added int
	rules []*activeRule
}

// NewSet returns a set with those rules in force.
func NewSet(rules []Rule, now func() time.Time) (*Set, error) {
	s := &Set{now: now}
	_, err := s.Add(rules)
	return s, err
}

// Add puts further rules in force, all or none, and returns their ids.
func (s *Set) Add(rules []Rule) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, ids := s.rules, []string{}
	for i, rule := range rules {
		if rule.ID == "" {
			rule.ID = fmt.Sprintf("fault-%d", s.added+i+1)
		}
		a, err := activate(rule)
		if err != nil {
			return nil, fmt.Errorf("adding fault %d: %w", i, err)
		}
		if slices.ContainsFunc(next, func(old *activeRule) bool { return old.ID == a.ID }) {
			return nil, fmt.Errorf("adding fault %d: the id %q is taken", i, a.ID)
		}
		next, ids = append(next, a), append(ids, a.ID)
	}
	s.added += len(rules)
	s.rules = next
	return ids, nil
}

// RuleStatus is a rule with its counts.
type RuleStatus struct {
	Rule
	// Seen is how many calls matched.
	Seen int `json:"seen"`
	// Hits is how many of them were struck.
	Hits int `json:"hits"`
	// Holding is how many operations wait because of the rule at this moment.
	Holding int `json:"holding"`
	// Released says that a hold was released.
	Released bool `json:"released,omitempty"`
}

// List returns the rules with their counts, in the order in which they were added.
func (s *Set) List() []RuleStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RuleStatus, 0, len(s.rules))
	for _, a := range s.rules {
		list = append(list, RuleStatus{Rule: a.Rule, Seen: a.seen, Hits: a.hits, Holding: a.holding, Released: a.isReleased})
	}
	return list
}

// Clear removes all rules and releases what they hold.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.rules {
		a.release()
	}
	s.rules = nil
}

// Release lets go what a hold holds, now and later. It returns ErrNoRule for an id that is not there.
func (s *Set) Release(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.rules, func(a *activeRule) bool { return a.ID == id })
	if at < 0 {
		return fmt.Errorf("releasing %q: %w", id, ErrNotFound)
	}
	s.rules[at].release()
	return nil
}

func (a *activeRule) release() {
	if !a.isReleased {
		a.isReleased = true
		close(a.released)
	}
}

// hit counts the call at the rules with such deeds and returns those that strike it.
func (s *Set) hit(call Call, deeds []Action) []*activeRule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var struck []*activeRule
	for _, a := range s.rules {
		if slices.Contains(deeds, a.Do) && a.matches(call) && a.hit() {
			struck = append(struck, a)
		}
	}
	return struck
}

// Refusal is an answer instead of the work.
type Refusal struct {
	Status     int
	RetryAfter time.Duration
	Message    string
}

// RequestFaults says what happens to one call on the wire.
type RequestFaults struct {
	Delay       time.Duration
	Refusal     *Refusal
	DropRequest bool
	DropAnswer  bool
}

// ForRequest counts a call that has arrived and says what is to happen to it.
func (s *Set) ForRequest(call Call) RequestFaults {
	var e RequestFaults
	for _, a := range s.hit(call, requestActions) {
		switch a.Do {
		case Delay:
			e.Delay += seconds(a.Seconds)
		case Refuse:
			e.Refusal = &Refusal{Status: a.Status, RetryAfter: seconds(a.RetryAfterSeconds), Message: a.message()}
		case DropRequest:
			e.DropRequest = true
		case DropAnswer:
			e.DropAnswer = true
		}
	}
	return e
}

func (a *activeRule) message() string {
	if a.Message != "" {
		return a.Message
	}
	return "scripted fault " + a.ID
}

// Failure is the result of an operation that fails.
type Failure struct {
	Category string
	Message  string
}

// OperationFaults says what happens to one operation. The zero value is an operation without faults.
type OperationFaults struct {
	set     *Set
	arrived time.Time
	rules   []*activeRule
}

// ForOperation counts a new operation and says what is to happen to it.
func (s *Set) ForOperation(call Call) OperationFaults {
	return OperationFaults{set: s, arrived: s.now(), rules: s.hit(call, operationActions)}
}

// Has says whether the plan has that deed.
func (p OperationFaults) Has(deed Action) bool {
	return slices.ContainsFunc(p.rules, func(a *activeRule) bool { return a.Do == deed })
}

// Waits says whether Wait may take time at either stage.
func (p OperationFaults) Waits() bool { return p.Has(Hold) || p.Has(Pause) || p.Has(Cycle) }

// Failure returns the failure that is to be the result at that stage, or nil.
func (p OperationFaults) Failure(stage Stage) *Failure {
	for _, a := range p.rules {
		if a.Do != Fail || a.Stage != stage {
			continue
		}
		category := a.Category
		if category == "" {
			category = "server"
		}
		return &Failure{Category: category, Message: a.message()}
	}
	return nil
}

// Wait returns when the operation may go on past that stage, or with the context's error. It
// tells with which queue state it waits, and an empty one when it is over.
func (p OperationFaults) Wait(ctx context.Context, stage Stage, tell func(queueState, reason string)) error {
	for _, a := range p.rules {
		wait := p.waitFunc(a)
		if wait == nil || a.Stage != stage {
			continue
		}
		tell(a.QueueState, a.message())
		p.set.addHolding(a, 1)
		err := wait(ctx)
		p.set.addHolding(a, -1)
		if err != nil {
			return err
		}
		tell("", "")
	}
	return nil
}

// waitFunc returns how to wait for a rule, or nil for one that does not wait.
func (p OperationFaults) waitFunc(a *activeRule) func(context.Context) error {
	switch a.Do {
	case Hold:
		return func(ctx context.Context) error { return await(ctx, a.released) }
	case Pause:
		return func(ctx context.Context) error { return sleep(ctx, seconds(a.Seconds)) }
	case Cycle:
		cycle := seconds(a.Seconds)
		return func(ctx context.Context) error {
			return sleep(ctx, p.arrived.Truncate(cycle).Add(cycle).Sub(p.set.now()))
		}
	}
	return nil
}

func (s *Set) addHolding(a *activeRule, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.holding += change
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
