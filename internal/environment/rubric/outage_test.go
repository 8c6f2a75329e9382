// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// notes is a recorder.
type notes struct {
	mu         sync.Mutex
	usage      environment.JudgeUsage
	judgements []environment.Judgement
	paused     time.Duration
}

func (n *notes) CountJudge(usage environment.JudgeUsage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.usage.Calls += usage.Calls
	n.usage.Errors += usage.Errors
	n.usage.Unreadable += usage.Unreadable
	n.usage.PromptTokens += usage.PromptTokens
	n.usage.SampledTokens += usage.SampledTokens
}

func (n *notes) RecordJudgements(judgements []environment.Judgement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.judgements = append(n.judgements, judgements...)
}

func (n *notes) Pause() func() {
	began := time.Now()
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.paused += time.Since(began)
	}
}

// down is a judge that answers no request until a time.
type down struct {
	until time.Time
	err   error
}

func (d down) Complete(context.Context, Request) (string, Usage, error) {
	if time.Now().Before(d.until) {
		return "", Usage{}, d.err
	}
	return yesNo, Usage{PromptTokens: 10, SampledTokens: 3}, nil
}

// TestJudgeThatIsDownIsAwaited checks that an outage, however long it lasts, leads to neither a score nor a fault, that
// it is reported, and that its time does not count as the episode's.
func TestJudgeThatIsDownIsAwaited(t *testing.T) {
	for name, failure := range map[string]error{
		"unreachable":   errors.New("connection refused"),
		"busy":          &RetryError{After: 2 * time.Second, Err: errors.New("429")},
		"unknown model": &UnavailableError{Err: errors.New("404")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mu sync.Mutex
				var reported []error
				g, err := New(down{until: began.Add(24 * time.Hour), err: failure}, Options{
					Scoring: settings.ScorePassRate, MinCoverage: 1, Retries: 2, Wait: true, Report: func(problem error) {
						mu.Lock()
						defer mu.Unlock()
						reported = append(reported, problem)
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				recorders := make([]notes, 8)
				var group sync.WaitGroup
				for i := range recorders {
					group.Go(func() {
						score, err := g.Grade(environment.WithRecorder(t.Context(), &recorders[i]), rowOf("It is a fruit.", "It is red."),
							reply)
						if err != nil || score.Reward != 0.5 {
							t.Errorf("Grade = %+v, %v, want the reward 0.5", score, err)
						}
					})
				}
				group.Wait()
				for i := range recorders {
					if working := time.Since(began) - recorders[i].paused; working > time.Second {
						t.Errorf("of the outage %v count as the episode's time", working)
					}
				}
				if len(reported) < 2 || !errors.Is(reported[0], failure) || reported[len(reported)-1] != nil {
					t.Errorf("reported %v, want the failure, and nil in the end", reported)
				}
			})
		})
	}
}

// TestInvalidCallIsNotAnOutage checks that a request that always fails is a fault if the judge answers others.
func TestInvalidCallIsNotAnOutage(t *testing.T) {
	for name, failure := range map[string]error{"500": errors.New("500"),
		"403": &UnavailableError{Err: errors.New("403: moderated")}} {
		t.Run(name, func(t *testing.T) {
			judge := &scripted{answers: []answer{{err: failure}}, trials: []answer{{text: "OK"}}}
			g, _ := grader(t, judge, Options{Retries: 1, Wait: true, Report: func(problem error) {
				if problem != nil {
					t.Errorf("reported %v", problem)
				}
			}})
			recorder := &notes{}
			_, err := g.Grade(environment.WithRecorder(t.Context(), recorder), rowOf("a", "b"), reply)
			if err == nil || environment.AsFault(err).Kind != environment.JudgeFault || !strings.Contains(err.Error(),
				failure.Error()) {
				t.Fatalf("Grade: %v, want a fault of the judge", err)
			}
			calls := int64(len(judge.asked))
			// The trial is counted as well: one token each way.
			want := environment.JudgeUsage{Calls: calls + 1, Errors: calls, PromptTokens: 10*calls + 1,
				SampledTokens: 3*calls + 1}
			if diff := cmp.Diff(want, recorder.usage); diff != "" || judge.tried != 1 {
				t.Errorf("%d trials, usage (-want +got):\n%s", judge.tried, diff)
			}
		})
	}
}

// TestTriesNumberUnreadableJudgements checks that a request for another judgement has a new number, and that a failed
// call is repeated unchanged: a judge on Tinker then replies the same.
func TestTriesNumberUnreadableJudgements(t *testing.T) {
	judge := &scripted{answers: []answer{{err: errors.New("reset")}, {text: "Hm."}, {err: errors.New("reset")},
		{text: yesNo}}}
	g, _ := grader(t, judge, Options{Retries: 3})
	seeded := reply
	seeded.Seed = 42
	recorder := &notes{}
	if _, err := g.Grade(environment.WithRecorder(t.Context(), recorder), rowOf("It is a fruit.", "It is red."),
		seeded); err != nil {
		t.Fatal(err)
	}
	var tries []int
	for _, request := range judge.asked {
		tries = append(tries, request.Try)
		if request.Seed != 42 || request.Call != 0 {
			t.Errorf("request has seed %d and call %d, want 42 and 0", request.Seed, request.Call)
		}
	}
	if diff := cmp.Diff([]int{0, 0, 1, 1}, tries); diff != "" {
		t.Errorf("tries (-want +got):\n%s", diff)
	}
	want := []environment.Judgement{{Criterion: "It is a fruit.", Rating: 1, Rationale: "a"},
		{Criterion: "It is red.", Rating: 0, Rationale: "b"}}
	if diff := cmp.Diff(want, recorder.judgements); diff != "" {
		t.Errorf("judgements (-want +got):\n%s", diff)
	}
	if want := (environment.JudgeUsage{Calls: 4, Errors: 2, Unreadable: 1, PromptTokens: 40,
		SampledTokens: 12}); recorder.usage != want {
		t.Errorf("usage is %+v, want %+v", recorder.usage, want)
	}
}

// TestBusyJudgeRestsForAll checks that no call is made while the judge wants none.
func TestBusyJudgeRestsForAll(t *testing.T) {
	judge := &scripted{answers: []answer{{err: &RetryError{After: 30 * time.Second, Err: errors.New("429")}},
		{text: yesNo}}}
	g, pauses := grader(t, judge, Options{Retries: 1})
	g.rest.take(20 * time.Second)
	if _, err := g.Grade(t.Context(), rowOf("a", "b"), reply); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{20 * time.Second, 30 * time.Second}, *pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}
