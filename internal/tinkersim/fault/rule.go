// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault scripts the faults of a simulated server. Faults are never random: a rule names the
// calls that it matches, the first of them that it affects, and how many it affects.
//
// Rules are written in JSON:
//
//	{"faults": [
//	  {"id": "half-batch", "op": "forward_backward", "occurrence": 3, "do": "fail", "category": "server"},
//	  {"op": "save_weights", "name": "s000012", "do": "hold"},
//	  {"op": "asample", "occurrence": 10, "count": 5, "do": "refuse", "status": 429, "retryAfterSeconds": 2}
//	]}
//
// A rule matches a call by op, the last part of its path under /api/v1 ("forward" for a forward_backward without a
// backward pass); by session, model and name, which are regular expressions for the ids and for the name or path of a
// checkpoint; and by seq. A field that is missing matches every call. The rule affects count of the matching calls
// (default one; -1 means all), from the occurrence-th on (default the first).
//
// Some actions affect the HTTP request. They count every request that arrives, including repetitions:
//
//	refuse         responds with status (and retryAfterSeconds, message) instead of doing anything
//	drop_request   closes the connection before anything is done
//	drop_answer    does the work and closes the connection instead of responding
//	delay          waits for seconds before anything is done
//
// The others affect the asynchronous operation. They count each operation once, even if its request is
// repeated, and are meant for operations that respond with a future:
//
//	fail           the result is a failure with category and message; nothing is done, or, with
//	               stage "reply", the work is done nevertheless
//	lose_promise   the work is done, but requests for the result get 410
//	hold           the operation waits until the rule is released, meanwhile with queueState; with
//	               stage "reply" it is carried out and its result waits
//	pause          is like hold, but waits for seconds
//	cycle          the operation waits for the next full multiple of seconds after its arrival
//	missing        a load or a new sampling session does not find its checkpoint
//	corrupt        a load finds its checkpoint damaged
//	cold_adam      a load drops the optimizer state without reporting it
//	ignore_seed    samples are drawn with another seed than the requested one, a new one each time
//	reorder_samples
//	               the samples of a request are returned in another order, a new one each time
package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
)

// Action is the effect of a rule on calls.
type Action string

// Actions that affect the HTTP request.
const (
	Refuse      Action = "refuse"
	DropRequest Action = "drop_request"
	DropAnswer  Action = "drop_answer"
	Delay       Action = "delay"
)

// Actions that affect the operation.
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
	// ReorderSamples returns the samples of a request in another order.
	ReorderSamples Action = "reorder_samples"
)

var (
	requestActions   = []Action{Refuse, DropRequest, DropAnswer, Delay}
	operationActions = []Action{Fail, LoseFuture, Hold, Pause, Cycle, Missing, Corrupt, ColdAdam, IgnoreSeed,
		ReorderSamples}
	timedActions  = []Action{Delay, Pause, Cycle}
	stagedActions = []Action{Fail, Hold, Pause}

	// categories are the categories of a failed result; an empty one means server.
	categories = []string{"", "user", "server", "unknown"}
)

// Stage says whether an action applies before or after an operation is carried out.
type Stage string

// The stages.
const (
	// Execute is the stage before the operation is carried out.
	Execute Stage = "execute"
	// Reply is the stage after it, before the result is returned.
	Reply Stage = "reply"
)

// Rule is one scripted fault. The package comment describes its JSON form.
type Rule struct {
	// ID names the rule in the list of faults and for its release; an empty one is replaced by a generated one.
	ID string `json:"id,omitempty"`

	Op      string `json:"op,omitempty"`
	Session string `json:"session,omitempty"`
	Model   string `json:"model,omitempty"`
	Name    string `json:"name,omitempty"`
	Seq     *int64 `json:"seq,omitempty"`

	// Occurrence is the number of the first matching call that is affected, counted from 1. 0 means 1.
	Occurrence int `json:"occurrence,omitempty"`
	// Count is the number of matching calls that are affected. 0 means 1, -1 means all.
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

// Script is a list of rules in a file or a request body.
type Script struct {
	Faults []Rule `json:"faults"`
}

// Decode decodes a script. It returns an error for unknown fields and invalid rules.
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

// Call describes a call by the properties that rules match.
type Call struct {
	Op      string
	Session string
	Model   string
	// Name is the name of the checkpoint that the call saves, or the path of the one that it reads.
	Name string
	Seq  int64
}

// activeRule is a rule with its counters.
type activeRule struct {
	Rule
	session, model, name *regexp.Regexp

	seen, hits, holding int
	released            chan struct{}
	isReleased          bool // released is closed
}

// activate validates a rule and sets its defaults.
func activate(rule Rule) (*activeRule, error) {
	rule.Occurrence = cmp.Or(rule.Occurrence, 1)
	rule.Count = cmp.Or(rule.Count, 1)
	rule.Stage = cmp.Or(rule.Stage, Execute)
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

// validate validates a rule after its defaults were set.
func (r Rule) validate() error {
	if !slices.Contains(requestActions, r.Do) && !slices.Contains(operationActions, r.Do) {
		return fmt.Errorf("checking do: %q is not a valid action", r.Do)
	}
	if r.Occurrence < 1 || r.Count < -1 {
		return errors.New("checking occurrence and count: both start at 1; count -1 means all")
	}
	staged := r.Stage == Reply && slices.Contains(stagedActions, r.Do)
	if r.Stage != Execute && !staged {
		return fmt.Errorf("checking stage: %q is not valid for %s", r.Stage, r.Do)
	}
	return r.validateArguments()
}

// validateArguments validates the fields that the action needs.
func (r Rule) validateArguments() error {
	switch {
	case r.Do == Refuse && (r.Status < 400 || r.Status > 599):
		return errors.New("checking status: refuse needs a status from 400 to 599")
	case r.Do == Fail && !slices.Contains(categories, r.Category):
		return fmt.Errorf("checking category: %q is not a valid category", r.Category)
	case slices.Contains(timedActions, r.Do) && r.Seconds <= 0:
		return fmt.Errorf("checking seconds: %s needs a positive number", r.Do)
	}
	return nil
}

// matches reports whether the rule matches the call.
func (a *activeRule) matches(call Call) bool {
	return (a.Op == "" || a.Op == call.Op) &&
		(a.Seq == nil || *a.Seq == call.Seq) &&
		a.session.MatchString(call.Session) &&
		a.model.MatchString(call.Model) &&
		a.name.MatchString(call.Name)
}

// hit counts a matching call and reports whether the rule affects it.
func (a *activeRule) hit() bool {
	a.seen++
	if a.seen < a.Occurrence || (a.Count >= 0 && a.seen >= a.Occurrence+a.Count) {
		return false
	}
	a.hits++
	return true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
