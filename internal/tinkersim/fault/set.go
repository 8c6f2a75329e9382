// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// ErrNotFound says that no rule has that id.
var ErrNotFound = errors.New("no fault has that id")

// Set holds the active rules. It is safe for concurrent use.
type Set struct {
	now func() time.Time

	mu    sync.Mutex
	added int
	rules []*activeRule
}

// NewSet returns a set with those rules.
func NewSet(rules []Rule, now func() time.Time) (*Set, error) {
	s := &Set{now: now}
	_, err := s.Add(rules)
	return s, err
}

// Add adds rules, all or none of them, and returns their ids.
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
			return nil, fmt.Errorf("adding fault %d: the id %q exists already", i, a.ID)
		}
		next, ids = append(next, a), append(ids, a.ID)
	}
	s.added += len(rules)
	s.rules = next
	return ids, nil
}

// RuleStatus is a rule with its counters.
type RuleStatus struct {
	Rule
	// Seen is the number of matching calls.
	Seen int `json:"seen"`
	// Hits is the number of calls that the rule affected.
	Hits int `json:"hits"`
	// Holding is the number of operations that currently wait because of the rule.
	Holding int `json:"holding"`
	// Released says that a hold was released.
	Released bool `json:"released,omitempty"`
}

// List returns the rules with their counters, in the order in which they were added.
func (s *Set) List() []RuleStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RuleStatus, 0, len(s.rules))
	for _, a := range s.rules {
		list = append(list, RuleStatus{Rule: a.Rule, Seen: a.seen, Hits: a.hits, Holding: a.holding, Released: a.isReleased})
	}
	return list
}

// Clear removes all rules and releases the operations that they hold.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.rules {
		a.release()
	}
	s.rules = nil
}

// Release releases the operations that a hold holds, and the operations that it would hold later. It may return
// ErrNotFound.
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

// hit counts the call at the matching rules with one of the actions and returns the rules that affect it.
func (s *Set) hit(call Call, actions []Action) []*activeRule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hits []*activeRule
	for _, a := range s.rules {
		if slices.Contains(actions, a.Do) && a.matches(call) && a.hit() {
			hits = append(hits, a)
		}
	}
	return hits
}

// Refusal is an error response instead of the work.
type Refusal struct {
	Status     int
	RetryAfter time.Duration
	Message    string
}

// RequestFaults are the faults that affect one HTTP request.
type RequestFaults struct {
	Delay       time.Duration
	Refusal     *Refusal
	DropRequest bool
	DropAnswer  bool
}

// ForRequest counts a request and returns the faults that affect it.
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

func (a *activeRule) message() string { return cmp.Or(a.Message, "scripted fault "+a.ID) }

// Failure is the result of an operation that fails.
type Failure struct {
	Category string
	Message  string
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// OperationFaults are the faults that affect one operation. The zero value has none.
type OperationFaults struct {
	set     *Set
	arrived time.Time
	rules   []*activeRule
}

// ForOperation counts a new operation and returns the faults that affect it.
func (s *Set) ForOperation(call Call) OperationFaults {
	return OperationFaults{set: s, arrived: s.now(), rules: s.hit(call, operationActions)}
}

// Has reports whether one of the faults has that action.
func (f OperationFaults) Has(action Action) bool {
	return slices.ContainsFunc(f.rules, func(a *activeRule) bool { return a.Do == action })
}

// Waits reports whether Wait may wait at either stage.
func (f OperationFaults) Waits() bool { return f.Has(Hold) || f.Has(Pause) || f.Has(Cycle) }

// Failure returns a *Failure if the operation fails at that stage.
func (f OperationFaults) Failure(stage Stage) error {
	for _, a := range f.rules {
		if a.Do == Fail && a.Stage == stage {
			return &Failure{Category: cmp.Or(a.Category, "server"), Message: a.message()}
		}
	}
	return nil
}

// Wait waits until the operation may pass that stage, or returns the context's error. It reports the queue
// state during each wait, and an empty one after it.
func (f OperationFaults) Wait(ctx context.Context, stage Stage, report func(queueState, reason string)) error {
	for _, a := range f.rules {
		wait := f.waitFunc(a)
		if wait == nil || a.Stage != stage {
			continue
		}
		report(a.QueueState, a.message())
		f.set.addHolding(a, 1)
		err := wait(ctx)
		f.set.addHolding(a, -1)
		if err != nil {
			return err
		}
		report("", "")
	}
	return nil
}

// waitFunc returns a function that waits as a rule demands, or nil if the rule does not wait.
func (f OperationFaults) waitFunc(a *activeRule) func(context.Context) error {
	switch a.Do {
	case Hold:
		return func(ctx context.Context) error { return await(ctx, a.released) }
	case Pause:
		return func(ctx context.Context) error { return wait.Sleep(ctx, seconds(a.Seconds)) }
	case Cycle:
		cycle := seconds(a.Seconds)
		return func(ctx context.Context) error {
			return wait.Sleep(ctx, f.arrived.Truncate(cycle).Add(cycle).Sub(f.set.now()))
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
