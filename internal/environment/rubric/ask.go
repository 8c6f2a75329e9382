// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// pauses are the pauses before retries, each shortened at random by up to a half. A pause that the judge asks for may
// be longer.
var pauses = wait.Backoff{First: time.Second, Longest: 20 * time.Second, Jitter: -0.5}

const longestAskedPause = time.Minute

// tally counts the calls for one reply. It is safe for concurrent use.
type tally struct {
	recorder environment.Recorder

	mu  sync.Mutex
	sum environment.JudgeUsage
}

func (t *tally) count(usage environment.JudgeUsage) {
	t.recorder.CountJudge(usage)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Calls += usage.Calls
	t.sum.Errors += usage.Errors
	t.sum.Unreadable += usage.Unreadable
	t.sum.PromptTokens += usage.PromptTokens
	t.sum.SampledTokens += usage.SampledTokens
}

func (t *tally) add(metrics map[string]float64) {
	metrics[MetricCalls], metrics[MetricUnreadable], metrics[MetricErrors] = float64(t.sum.Calls),
		float64(t.sum.Unreadable), float64(t.sum.Errors)
	metrics[MetricPromptTokens], metrics[MetricSampledTokens] = float64(t.sum.PromptTokens), float64(t.sum.SampledTokens)
}

// attempts counts the results of the calls for one judgement.
type attempts struct {
	// unreadable counts replies that were not judgements, and failed counts calls that gave no reply.
	unreadable, failed int
	// pauses are the pauses between the calls.
	pauses wait.Pauses
	// outages is the number of outages that were over before these calls.
	outages int64
}

// ask asks for a judgement until one can be read, or the retries are used up. It waits for a judge that is down. An
// error is a fault of the judge, or the context's.
func (g *Grader) ask(ctx context.Context, t task, calls *tally, floor float64) (judgement, error) {
	made := attempts{pauses: wait.Pauses{Backoff: pauses}, outages: g.outage.ended.Load()}
	for {
		found, err := g.askOnce(ctx, t, made.unreadable, calls, floor)
		if err == nil {
			return found, nil
		}
		if err := g.prepareRetry(ctx, &made, calls, err); err != nil {
			return judgement{}, err
		}
	}
}

// prepareRetry pauses before the next call. An error is final: a fault of the judge, or the context's.
func (g *Grader) prepareRetry(ctx context.Context, made *attempts, calls *tally, failure error) error {
	var fault *environment.Fault
	var reply *ReplyError
	var unavailable *UnavailableError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(failure, &fault):
		return &environment.Fault{Kind: environment.JudgeFault, Permanent: fault.Permanent,
			Err: fmt.Errorf("asking the judge: %w", fault.Err)}
	case errors.As(failure, &reply):
		if made.unreadable++; made.unreadable+made.failed > g.options.Retries {
			return made.fault(failure)
		}
	default:
		made.failed++
		if errors.As(failure, &unavailable) || made.unreadable+made.failed > g.options.Retries {
			return g.prepareAfterOutage(ctx, made, calls, failure)
		}
	}
	return g.pause(ctx, calls, pauseAfter(failure, made.pauses.Next()))
}

// prepareAfterOutage waits if the judge is down. Calls that fail during an outage do not count as retries.
func (g *Grader) prepareAfterOutage(ctx context.Context, made *attempts, calls *tally, failure error) error {
	wasDown, err := g.await(ctx, made.outages, calls, failure)
	switch {
	case err != nil:
		return err
	case !wasDown:
		return made.fault(failure)
	}
	made.failed, made.pauses.Failures, made.outages = 0, 0, g.outage.ended.Load()
	return nil
}

func (a attempts) fault(failure error) error {
	err := fmt.Errorf("asking the judge %d times: %w", a.unreadable+a.failed, failure)
	return &environment.Fault{Kind: environment.JudgeFault, Err: err}
}

// pause waits. The clock of the episode does not run meanwhile.
func (g *Grader) pause(ctx context.Context, calls *tally, d time.Duration) error {
	defer calls.recorder.Pause()()
	return g.sleep(ctx, d)
}

// pauseAfter returns the pause, or a longer one that the error asks for.
func pauseAfter(err error, pause time.Duration) time.Duration {
	if retry, ok := errors.AsType[*RetryError](err); ok {
		return min(max(pause, retry.After), longestAskedPause)
	}
	return pause
}

// askOnce asks for a judgement once. The number of earlier judgements that could not be read makes it a different
// request.
func (g *Grader) askOnce(ctx context.Context, t task, unreadable int, calls *tally, floor float64) (judgement, error) {
	text, err := g.complete(ctx, Request{Messages: t.messages(g.options.Scoring), Seed: t.seed, Call: t.call,
		Try: unreadable}, calls)
	if err != nil {
		return judgement{}, err
	}
	found, err := parse(text, len(t.criteria), g.options.Scoring == settings.ScoreScore)
	if err == nil {
		if covered := coverage(found.ratings); covered < floor || covered == 0 {
			err = fmt.Errorf("reading a judgement: %.0f%% of the criteria are rated, minCoverage is %.0f%%", 100*covered,
				100*floor)
		}
	}
	if err != nil {
		calls.count(environment.JudgeUsage{Unreadable: 1})
		return judgement{}, &ReplyError{Err: err}
	}
	return found, nil
}

// complete calls the judge once and counts the call.
func (g *Grader) complete(ctx context.Context, request Request, calls *tally) (string, error) {
	if left := g.rest.left(); left > 0 {
		if err := g.pause(ctx, calls, left); err != nil {
			return "", err
		}
	}
	call, cancel := ctx, context.CancelFunc(func() {})
	if g.options.Timeout > 0 {
		call, cancel = context.WithTimeout(ctx, g.options.Timeout)
	}
	defer cancel()
	text, usage, err := g.judge.Complete(call, request)
	counted := environment.JudgeUsage{Calls: 1, PromptTokens: usage.PromptTokens, SampledTokens: usage.SampledTokens}
	var reply *ReplyError
	var retry *RetryError
	switch {
	case err == nil:
	case errors.As(err, &reply):
		counted.Unreadable = 1
	default:
		counted.Errors = 1
		if errors.As(err, &retry) {
			g.rest.take(retry.After)
		}
	}
	calls.count(counted)
	return text, err
}
