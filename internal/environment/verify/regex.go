// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// answerGroup is the group of a pattern that is compared with the answer.
const answerGroup = "answer"

// Regex rewards a reply with 1 if its pattern matches. If the pattern has a group with the name answer, the text of
// that group in the last match must be the row's answer, too. A reply that a token limit cut earns 0.
type Regex struct {
	pattern *regexp.Regexp
	group   int
}

// NewRegex compiles the pattern.
func NewRegex(pattern string) (*Regex, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern does not compile: %w; correct it, it has the syntax of RE2", err)
	}
	return &Regex{pattern: compiled, group: compiled.SubexpIndex(answerGroup)}, nil
}

// Grade implements Grader.
func (r *Regex) Grade(_ context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	if r.group < 0 {
		found := r.pattern.MatchString(reply.Message.Content)
		return compare(reply, found, true).score(), nil
	}
	if row.Answer == "" {
		return Score{}, errNoAnswer()
	}
	match, ok := last(r.pattern.FindAllStringSubmatch(reply.Message.Content, -1))
	return compare(reply, ok, ok && strings.TrimSpace(match[r.group]) == strings.TrimSpace(row.Answer)).score(), nil
}

var _ Grader = (*Regex)(nil)
