// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"strings"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// recorder records the usage and judgements of the graders of one try.
type recorder struct {
	progress *Progress

	mu sync.Mutex
	// clock is the clock of the environment's call in progress.
	clock *callClock
	// judgements by conversation.
	judgements map[string][]rl.Judgement
}

var _ environment.Recorder = (*recorder)(nil)

// CountJudge implements environment.Recorder. Calls that were paid for count even if their try fails.
func (r *recorder) CountJudge(usage environment.JudgeUsage) {
	if r.progress.Judged != nil {
		r.progress.Judged(usage)
	}
	r.progress.judgeMutex.Lock()
	defer r.progress.judgeMutex.Unlock()
	sum := &r.progress.judge
	sum.Calls += usage.Calls
	sum.Errors += usage.Errors
	sum.Unreadable += usage.Unreadable
	sum.PromptTokens += usage.PromptTokens
	sum.SampledTokens += usage.SampledTokens
}

// RecordJudgements implements environment.Recorder. It keeps as much as a trajectory may have.
func (r *recorder) RecordJudgements(judgements []environment.Judgement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range judgements {
		known := r.judgements[j.Conversation]
		if len(known) >= rl.MaxJudgements {
			continue
		}
		if r.judgements == nil {
			r.judgements = map[string][]rl.Judgement{}
		}
		r.judgements[j.Conversation] = append(known, rl.Judgement{
			Criterion: boundedText(j.Criterion), Rationale: boundedText(j.Rationale), Rating: j.Rating,
		})
	}
}

// boundedText returns valid text of a bounded length, as the exchange takes it.
func boundedText(text string) string {
	return contract.Truncate(strings.ToValidUTF8(text, "\uFFFD"), rl.MaxJudgementText)
}

// Pause implements environment.Recorder.
func (r *recorder) Pause() (resume func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock == nil {
		return func() {}
	}
	return r.clock.pause()
}

// current returns the clock of the call in progress.
func (r *recorder) current() *callClock {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock
}

// use sets the clock of the call in progress.
func (r *recorder) use(clock *callClock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = clock
}

// of returns the judgements of a conversation.
func (r *recorder) of(conversation string) []rl.Judgement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.judgements[conversation]
}
