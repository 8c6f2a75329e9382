// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// The pause before a retry doubles from the first to the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// tally counts the calls for one reply. It is safe for concurrent use.
type tally struct {
	mu                       sync.Mutex
	calls, unreadable, fails float64
	usage                    Usage
}

func (t *tally) count(usage Usage, failed, unreadable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	t.usage.PromptTokens += usage.PromptTokens
	t.usage.SampledTokens += usage.SampledTokens
	if failed {
		t.fails++
	}
	if unreadable {
		t.unreadable++
	}
}

func (t *tally) add(metrics map[string]float64) {
	metrics[MetricCalls], metrics[MetricUnreadable], metrics[MetricErrors] = t.calls, t.unreadable, t.fails
	metrics[MetricPromptTokens], metrics[MetricSampledTokens] = float64(t.usage.PromptTokens), float64(t.usage.SampledTokens)
}

// ask asks for ratings until enough of them can be read, or the retries are used up. An error is a fault of the judge, or
// the context's.
func (g *Grader) ask(ctx context.Context, t task, calls *tally, floor float64) ([]float64, error) {
	pause := firstPause
	for try := 0; ; try++ {
		ratings, err := g.askOnce(ctx, t, calls, floor)
		var fault *environment.Fault
		switch {
		case err == nil:
			return ratings, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &fault):
			return nil, &environment.Fault{Kind: environment.JudgeFault, Permanent: fault.Permanent, Err: fmt.Errorf("asking the judge: %w", fault.Err)}
		case try == g.options.Retries:
			return nil, &environment.Fault{Kind: environment.JudgeFault, Err: fmt.Errorf("asking the judge %d times: %w", try+1, err)}
		}
		if err := g.sleep(ctx, pauseAfter(err, pause)); err != nil {
			return nil, err
		}
		pause = min(2*pause, longestPause)
	}
}

// pauseAfter returns the pause with jitter, or a longer one that the error asks for.
func pauseAfter(err error, pause time.Duration) time.Duration {
	jittered := pause/2 + rand.N(pause/2+1)
	var retry *RetryError
	if errors.As(err, &retry) {
		return min(max(jittered, retry.After), longestPause)
	}
	return jittered
}

// askOnce asks once. An error that is not a fault may be retried.
func (g *Grader) askOnce(ctx context.Context, t task, calls *tally, floor float64) ([]float64, error) {
	call, cancel := ctx, context.CancelFunc(func() {})
	if g.options.Timeout > 0 {
		call, cancel = context.WithTimeout(ctx, g.options.Timeout)
	}
	defer cancel()
	text, usage, err := g.judge.Complete(call, t.messages(g.options.Scoring))
	if err != nil {
		calls.count(usage, true, false)
		return nil, err
	}
	ratings, err := parse(text, len(t.criteria), g.options.Scoring == Score)
	if err == nil {
		if covered := coverage(ratings); covered < floor || covered == 0 {
			err = fmt.Errorf("reading a judgement: %.0f%% of the criteria are rated, minCoverage is %.0f%%", 100*covered, 100*floor)
		}
	}
	calls.count(usage, false, err != nil)
	return ratings, err
}

func sleep(ctx context.Context, d time.Duration) error { return wait.Sleep(ctx, d) }
