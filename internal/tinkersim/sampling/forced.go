// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// ForcedRule forces the beginning of samples of certain prompts, so that a model which never learnt to call tools calls
// them. The first rule that applies to a prompt decides.
//
// It exists for tests, and nothing is forced unless a test adds rules. Only the text of the prompt and the sample's
// seed decide: rewards never reach this code, and the log-probabilities of forced tokens are the model's own. A policy
// learns the same from forced samples as if it had drawn them.
type ForcedRule struct {
	// Contains is text that the prompt must contain; empty matches every prompt.
	Contains string `json:"contains"`
	// Scripts divide the samples among them; samples beyond the sum of their shares are drawn freely.
	Scripts []Script `json:"scripts"`
}

// Script is the beginning of a share of the samples.
type Script struct {
	// Share is the share of the samples, above 0 and at most 1.
	Share float64 `json:"share"`
	// Tokens are the first tokens of these samples, in the vocabulary of the sampled model.
	Tokens []int32 `json:"tokens"`
}

func (r ForcedRule) validate() error {
	sum := 0.0
	for i, script := range r.Scripts {
		if !(script.Share > 0 && script.Share <= 1) || len(script.Tokens) == 0 {
			return fmt.Errorf("scripts[%d] needs a share above 0 and at most 1, and tokens", i)
		}
		sum += script.Share
	}
	if len(r.Scripts) == 0 || sum > 1+1e-9 {
		return fmt.Errorf("scripts must not be empty, and the sum of their shares must be at most 1, not %g", sum)
	}
	return nil
}

// ForcedSamples holds the active rules. It is safe for concurrent use; nil has no rules.
type ForcedSamples struct {
	mu    sync.Mutex
	rules []ForcedRule
}

// Replace replaces all rules. After an error the earlier ones stay active.
func (s *ForcedSamples) Replace(rules []ForcedRule) error {
	for i, rule := range rules {
		if err := rule.validate(); err != nil {
			return fmt.Errorf("validating rule %d of forced samples: %w", i, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = rules
	return nil
}

// DecodeForcedRules decodes {"rules": [...]}.
func DecodeForcedRules(body []byte) ([]ForcedRule, error) {
	var decoded struct {
		Rules []ForcedRule `json:"rules"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("decoding forced samples: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decoding forced samples: the JSON object is followed by more data")
	}
	return decoded.Rules, nil
}

// Rule returns the rule that applies to a prompt, or nil if there is none.
func (s *ForcedSamples) Rule(prompt []byte) *ForcedRule {
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

// Tokens returns the forced first tokens of the sample with that seed and index, or nil if there are none.
func (r *ForcedRule) Tokens(seed uint64, index int) []int32 {
	if r == nil {
		return nil
	}
	u := forcedUniform(seed, index)
	for _, script := range r.Scripts {
		if u < script.Share {
			return script.Tokens
		}
		u -= script.Share
	}
	return nil
}

// forcedUniform returns a number of at least 0 and below 1. It differs from the numbers that the model draws with.
func forcedUniform(seed uint64, index int) float64 {
	x := model.Mix(model.Mix(seed^0x7265686561727361) + uint64(index)*0x9e3779b97f4a7c15)
	return float64(x>>11) / (1 << 53)
}
