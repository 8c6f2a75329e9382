// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault is the script of what goes wrong in a simulated server. Faults are never left to
// chance: a rule names the calls it is meant for, the first of them that it strikes and how many.
//
// Rules are written in JSON:
//
//	{"faults": [
//	  {"id": "half-batch", "op": "forward_backward", "occurrence": 3, "do": "fail", "category": "server"},
//	  {"op": "save_weights", "name": "s000012", "do": "hold"},
//	  {"op": "asample", "occurrence": 10, "count": 5, "do": "refuse", "status": 429, "retryAfterSeconds": 2}
//	]}
//
// A rule matches a call by op, the last part of its path under /api/v1 ("forward" for a
// forward_backward without a backward pass), and by session, model and name, regular expressions
// for the ids and for the name or path of a checkpoint, and by seq. What is left out matches
// everything. Of the calls that match, the rule strikes those from the occurrence-th on (default
// the first), count of them (default one; -1 is all).
//
// Some deeds strike the exchange, and count every call that arrives, repetitions included:
//
//	refuse         answer with status (and retryAfterSeconds, message) instead of doing anything
//	drop_request   close the connection before anything is done
//	drop_answer    do the work and close the connection instead of answering
//	delay          wait for seconds before anything is done
//
// The others strike the asynchronous operation, and count each operation once, whatever is
// posted again. They are meant for operations that answer with a promise:
//
//	fail           the result is a failure with category and message; nothing is done, or, with
//	               stage "reply", it was done all the same
//	lose_promise   the work is done, but whoever asks for the result is told that it is lost (410)
//	hold           the operation waits until the rule is released, meanwhile with queueState; with
//	               stage "reply" it is carried out and its result waits
//	pause          the same, for seconds
//	cycle          the operation waits for the next full multiple of seconds after its arrival
//	missing        a load or a new sampling session finds its checkpoint gone
//	corrupt        a load finds its checkpoint damaged
//	cold_adam      a load leaves the optimizer state behind without saying so
//	ignore_seed    samples are drawn by another seed than the one that was asked for, another each time
package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
)

// Action is what a rule does to the calls that it strikes.
type Action string

// Deeds that strike the exchange.
const (
	Refuse      Action = "refuse"
	DropRequest Action = "drop_request"
	DropAnswer  Action = "drop_answer"
	Delay       Action = "delay"
)

// Deeds that strike the operation.
const (
	Fail       Action = "fail"
	LoseFuture Action = "lose_promise"
	Hold       Action = "hold"
	Pause      Action = "pause"
	Cycle      Action = "cycle"
	Missing    Action = "missing"
	Corrupt    Action = "corrupt"
	ColdAdam   Action = "cold_adam"
	IgnoreSeed Action = "ignore_seed"
)

var (
	requestActions   = []Action{Refuse, DropRequest, DropAnswer, Delay}
	operationActions = []Action{Fail, LoseFuture, Hold, Pause, Cycle, Missing, Corrupt, ColdAdam, IgnoreSeed}
	timedActions     = []Action{Delay, Pause, Cycle}
	stagedActions    = []Action{Fail, Hold, Pause}

	// categories are those of a failed result; without one it is the server's.
	categories = []string{"", "user", "server", "unknown"}
)

// Stage says at which end of an operation a deed strikes.
type Stage string

// The stages.
const (
	// Execute is before the operation is carried out.
	Execute Stage = "execute"
	// Reply is after it, before its result is given out.
	Reply Stage = "reply"
)

// Rule is one scripted fault. Its JSON form is described at the package.
type Rule struct {
	// ID names the rule in the list of faults and for its release; it is made up when empty.
	ID string `json:"id,omitempty"`

	Op      string `json:"op,omitempty"`
	Session string `json:"session,omitempty"`
	Model   string `json:"model,omitempty"`
	Name    string `json:"name,omitempty"`
	Seq     *int64 `json:"seq,omitempty"`

	// Occurrence is the first matching call that is struck, counted from 1. 0 is 1.
	Occurrence int `json:"occurrence,omitempty"`
	// Count is how many matching calls are struck. 0 is 1, -1 is all.
	Count int `json:"count,omitempty"`

	Do    Action `json:"do"`
	Stage Stage  `json:"stage,omitempty"`

	Status            int     `json:"status,omitempty"`
	RetryAfterSeconds float64 `json:"retryAfterSeconds,omitempty"`
	Category          string  `json:"category,omitempty"`
	Message           string  `json:"message,omitempty"`
	Seconds           float64 `json:"seconds,omitempty"`
	QueueState        string  `json:"queueState,omitempty"`
}

// Script is a list of rules as it is written to a file or posted.
type Script struct {
	Faults []Rule `json:"faults"`
}

// Decode reads a script and refuses what it does not know.
func Decode(r io.Reader) ([]Rule, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading faults: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var script Script
	if err := decoder.Decode(&script); err != nil {
		return nil, fmt.Errorf("decoding faults: %w", err)
	}
	for i, rule := range script.Faults {
		if _, err := activate(rule); err != nil {
			return nil, fmt.Errorf("decoding fault %d: %w", i, err)
		}
	}
	return script.Faults, nil
}

// Call describes a call as far as rules look at it.
type Call struct {
	Op      string
	Session string
	Model   string
	// Name is the name of a checkpoint that is saved, or the path of one that is read.
	Name string
	Seq  int64
}

// activeRule is a rule with its counts.
type activeRule struct {
	Rule
	session, model, name *regexp.Regexp

	seen, hits, holding int
	released            chan struct{}
	isReleased          bool // released is closed
}

// activate checks a rule and fills in its defaults.
func activate(rule Rule) (*activeRule, error) {
	if rule.Occurrence == 0 {
		rule.Occurrence = 1
	}
	if rule.Count == 0 {
		rule.Count = 1
	}
	if rule.Stage == "" {
		rule.Stage = Execute
	}
	if err := rule.validate(); err != nil {
		return nil, err
	}
	a := &activeRule{Rule: rule, released: make(chan struct{})}
	var errs [3]error
	a.session, errs[0] = regexp.Compile(rule.Session)
	a.model, errs[1] = regexp.Compile(rule.Model)
	a.name, errs[2] = regexp.Compile(rule.Name)
	return a, errors.Join(errs[:]...)
}

// validate checks a rule that has its defaults.
func (r Rule) validate() error {
	if !slices.Contains(requestActions, r.Do) && !slices.Contains(operationActions, r.Do) {
		return fmt.Errorf("checking do: %q is no deed", r.Do)
	}
	if r.Occurrence < 1 || r.Count < -1 {
		return errors.New("checking occurrence and count: they start at 1, count -1 is all")
	}
	staged := r.Stage == Reply && slices.Contains(stagedActions, r.Do)
	if r.Stage != Execute && !staged {
		return fmt.Errorf("checking stage: %q does not go with %s", r.Stage, r.Do)
	}
	return r.validateArguments()
}

// validateArguments checks what the deed needs.
func (r Rule) validateArguments() error {
	switch {
	case r.Do == Refuse && (r.Status < 400 || r.Status > 599):
		return errors.New("checking status: refuse needs one from 400 to 599")
	case r.Do == Fail && !slices.Contains(categories, r.Category):
		return fmt.Errorf("checking category: %q is none", r.Category)
	case slices.Contains(timedActions, r.Do) && r.Seconds <= 0:
		return fmt.Errorf("checking seconds: %s needs them", r.Do)
	}
	return nil
}

// matches says whether the rule is meant for the call.
func (a *activeRule) matches(call Call) bool {
	return (a.Op == "" || a.Op == call.Op) &&
		(a.Seq == nil || *a.Seq == call.Seq) &&
		a.session.MatchString(call.Session) &&
		a.model.MatchString(call.Model) &&
		a.name.MatchString(call.Name)
}

// hit counts a matching call and says whether this one is struck.
func (a *activeRule) hit() bool {
	a.seen++
	if a.seen < a.Occurrence || (a.Count >= 0 && a.seen >= a.Occurrence+a.Count) {
		return false
	}
	a.hits++
	return true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
