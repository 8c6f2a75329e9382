// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rubric scores replies by criteria that a model, the judge, applies to them. A judgement that fails is a
// fault of the judge: the reply gets no reward then, instead of a reward of 0.
package rubric

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Metrics of a reply. A criterion whose score is at least 0.5 is passed.
const (
	// MetricPassRate is the share of the rated criteria that are passed.
	MetricPassRate = "pass_rate"
	// MetricNumPassed is the number of criteria that are passed.
	MetricNumPassed = "num_passed"
	// MetricNumRubrics is the number of criteria.
	MetricNumRubrics = "num_rubrics"
	// MetricCorrect is 1 if all criteria are rated and passed.
	MetricCorrect = "correct"
	// MetricCoverage is the share of the criteria that were rated.
	MetricCoverage = "judge/coverage"
	// MetricCalls is the number of calls of the judge, retries among them.
	MetricCalls = "judge/calls"
	// MetricUnreadable is the number of judgements that could not be read.
	MetricUnreadable = "judge/unreadable"
	// MetricErrors is the number of calls that failed.
	MetricErrors = "judge/errors"
	// MetricSeconds is how long the judgement of the reply took.
	MetricSeconds = "judge/seconds"
	// MetricPromptTokens and MetricSampledTokens are the judge's tokens.
	MetricPromptTokens  = "judge/prompt_tokens"
	MetricSampledTokens = "judge/sampled_tokens"
)

// FieldRubrics is the field of a row that has its criteria, a list of texts.
const FieldRubrics = "rubrics"

// concurrentCalls bounds the calls for one reply.
const concurrentCalls = 8

// Options say how replies are judged.
type Options struct {
	// Scoring is how judgements are asked for: with one call for each criterion (PerRubric), or for all in one call. The
	// reward is the share of Yes, or the mean of scores from 0 to 1 (Score).
	Scoring settings.RubricScoring
	// MinCoverage is the share of the criteria that must be rated. It is from 0 to 1.
	MinCoverage float64
	// Retries bounds how often a call is repeated if it fails or if its judgement cannot be read.
	Retries int
	// Timeout bounds each call; 0 means no bound.
	Timeout time.Duration
	// Now is the clock for MetricSeconds, and for the time in which a busy judge wants no calls. If it is nil, there is
	// no such metric, and a call that meets a busy judge delays no other call.
	Now func() time.Time
	// Wait makes calls wait for a judge that is down. If it is false, an outage is a fault of the judge.
	Wait bool
	// Report is called with the problem when the judge cannot be asked, and with nil once it can be asked again.
	Report func(problem error)
}

// Grader scores replies with a judge.
type Grader struct {
	judge   Judge
	options Options
	outage  outage
	// rest is the time before which the judge wants no calls.
	rest  rest
	sleep func(ctx context.Context, d time.Duration) error
}

// New returns a grader. It fails if the options are invalid.
func New(judge Judge, options Options) (*Grader, error) {
	switch options.Scoring {
	case settings.ScorePassRate, settings.ScorePerRubric, settings.ScoreScore:
	default:
		return nil, fmt.Errorf("rubric.scoring is %q, it must be PassRate, PerRubric or Score", options.Scoring)
	}
	if !(options.MinCoverage >= 0 && options.MinCoverage <= 1) {
		return nil, fmt.Errorf("rubric.minCoverage is %v, it must be from 0 to 1", options.MinCoverage)
	}
	if options.Retries < 0 {
		return nil, fmt.Errorf("rubric.judge.retries is %d, it must be at least 0", options.Retries)
	}
	if options.Report == nil {
		options.Report = func(error) {}
	}
	return &Grader{judge: judge, options: options, outage: newOutage(), rest: rest{now: options.Now}, sleep: wait.Sleep},
		nil
}

// Grade implements verify.Grader.
func (g *Grader) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (verify.Score, error) {
	criteria, err := criteriaOf(row)
	if err != nil {
		return verify.Score{}, err
	}
	var began time.Time
	if g.options.Now != nil {
		began = g.options.Now()
	}
	calls := tally{recorder: environment.RecorderFrom(ctx)}
	rated, err := g.rate(ctx, task{prompt: row.Prompt, reply: reply.Message.Content, criteria: criteria, seed: reply.Seed},
		&calls)
	if err != nil {
		return verify.Score{}, err
	}
	score := scoreOf(rated)
	calls.add(score.Metrics)
	calls.recorder.RecordJudgements(rated.judgements(reply.Conversation, criteria))
	if g.options.Now != nil {
		score.Metrics[MetricSeconds] = g.options.Now().Sub(began).Seconds()
	}
	return score, nil
}

// criteriaOf returns the row's criteria. A row without any cannot be graded.
func criteriaOf(row dataset.Row) ([]string, error) {
	list, ok := row.Fields[FieldRubrics].([]any)
	if !ok || len(list) == 0 {
		return nil, rowFault("the row's field rubrics is not a list of at least one criterion: map it to such a column " +
			"with dataset.fields, and remove rows without criteria")
	}
	criteria := make([]string, len(list))
	for i, element := range list {
		text, ok := element.(string)
		if !ok || text == "" {
			return nil, rowFault("the row's rubrics[%d] is not a text with a criterion: correct the data", i)
		}
		criteria[i] = text
	}
	return criteria, nil
}

func rowFault(format string, values ...any) error {
	return &environment.Fault{Permanent: true, Err: fmt.Errorf("judging a reply: "+format, values...)}
}

// CheckRow implements verify.RowChecker.
func (g *Grader) CheckRow(row dataset.Row) error {
	_, err := criteriaOf(row)
	return err
}

// rate returns a rating for each criterion; it is NaN for a criterion that was not rated.
func (g *Grader) rate(ctx context.Context, t task, calls *tally) (judgement, error) {
	if g.options.Scoring != settings.ScorePerRubric {
		return g.ask(ctx, t, calls, g.options.MinCoverage)
	}
	all, failures := newJudgement(len(t.criteria)), make([]error, len(t.criteria))
	var group errgroup.Group
	group.SetLimit(concurrentCalls)
	for i := range t.criteria {
		group.Go(func() error {
			alone := t
			alone.criteria, alone.call = t.criteria[i:i+1], i
			one, err := environment.Guard(nil, "asking a judge",
				func() (judgement, error) { return g.ask(ctx, alone, calls, 1) })
			if err == nil {
				all.ratings[i], all.rationales[i] = one.ratings[0], one.rationales[0]
			}
			failures[i] = err
			return nil
		})
	}
	_ = group.Wait() // The calls report their errors in failures.
	if ctx.Err() != nil {
		return judgement{}, ctx.Err()
	}
	if covered := coverage(all.ratings); covered < g.options.MinCoverage || covered == 0 {
		return judgement{}, cmp.Or(failures...)
	}
	return all, nil
}

// coverage returns the share of the criteria that were rated.
func coverage(ratings []float64) float64 {
	rated := 0
	for _, rating := range ratings {
		if !math.IsNaN(rating) {
			rated++
		}
	}
	return float64(rated) / float64(len(ratings))
}

// passMark is the least rating with which a criterion is passed.
const passMark = 0.5

// scoreOf returns the mean of the ratings, over the criteria that were rated.
func scoreOf(j judgement) verify.Score {
	var sum, passed, rated float64
	for _, rating := range j.ratings {
		if math.IsNaN(rating) {
			continue
		}
		rated++
		sum += rating
		if rating >= passMark {
			passed++
		}
	}
	total := float64(len(j.ratings))
	metrics := map[string]float64{
		MetricPassRate: passed / rated, MetricNumPassed: passed, MetricNumRubrics: total, MetricCorrect: 0,
		MetricCoverage: rated / total,
	}
	if passed == total {
		metrics[MetricCorrect] = 1
	}
	return verify.Score{Reward: sum / rated, Metrics: metrics}
}

var (
	_ verify.Grader     = (*Grader)(nil)
	_ verify.RowChecker = (*Grader)(nil)
)
