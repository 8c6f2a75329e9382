// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rehearsal makes samples begin with tokens that a test wants, so that a model which never learnt
// to call tools calls them.
//
// It is for tests, and off unless a test puts rules in force. It decides by the text of the prompt and the
// sample's seed alone: rewards never reach it, and the log-probabilities of what it forces are the model's
// own. What a policy learns from rehearsed samples is what it would learn had it drawn them.
package rehearsal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Rule is what happens to samples of certain prompts. Of several rules the first that applies counts.
type Rule struct {
	// Contains is text that the prompt has; empty for every prompt.
	Contains string `json:"contains"`
	// Scripts divide the samples among them; what their shares leave is drawn as ever.
	Scripts []Script `json:"scripts"`
}

// Script is what some of the samples begin with.
type Script struct {
	// Share of the samples, above 0 and at most 1.
	Share float64 `json:"share"`
	// Tokens that they begin with, in the vocabulary of the model that is asked.
	Tokens []int32 `json:"tokens"`
}

func (r Rule) validate() error {
	sum := 0.0
	for i, script := range r.Scripts {
		if !(script.Share > 0 && script.Share <= 1) || len(script.Tokens) == 0 {
			return fmt.Errorf("scripts[%d] needs a share above 0 and at most 1, and tokens", i)
		}
		sum += script.Share
	}
	if len(r.Scripts) == 0 || sum > 1+1e-9 {
		return fmt.Errorf("scripts must not be empty, and their shares add up to at most 1, not %g", sum)
	}
	return nil
}

// Set is the rules in force. It is safe for concurrent use; nil is an empty one.
type Set struct {
	mu    sync.Mutex
	rules []Rule
}

// Replace puts these rules in force, and no others. After an error those before still are.
func (s *Set) Replace(rules []Rule) error {
	for i, rule := range rules {
		if err := rule.validate(); err != nil {
			return fmt.Errorf("reading rehearsal %d: %w", i, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = rules
	return nil
}

// Decode reads {"rehearsals": [...]}.
func Decode(body []byte) ([]Rule, error) {
	var given struct {
		Rehearsals []Rule `json:"rehearsals"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return nil, fmt.Errorf("decoding rehearsals: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decoding rehearsals: something follows the JSON object")
	}
	return given.Rehearsals, nil
}

// For gives the rule that applies to a prompt; nil if there is none.
func (s *Set) For(prompt []byte) *Rule {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rules {
		if bytes.Contains(prompt, []byte(s.rules[i].Contains)) {
			return &s.rules[i]
		}
	}
	return nil
}

// Tokens gives what the sample of a seed and index begins with; nil for nothing.
func (r *Rule) Tokens(seed uint64, index int) []int32 {
	if r == nil {
		return nil
	}
	u := uniform(seed, index)
	for _, script := range r.Scripts {
		if u < script.Share {
			return script.Tokens
		}
		u -= script.Share
	}
	return nil
}

// uniform gives a number of at least 0 and below 1. It is another one than the model draws with.
func uniform(seed uint64, index int) float64 {
	x := mix(mix(seed^0x7265686561727361) + uint64(index)*0x9e3779b97f4a7c15)
	return float64(x>>11) / (1 << 53)
}

// mix is the finaliser of SplitMix64: each bit of x decides about half of the result's.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
