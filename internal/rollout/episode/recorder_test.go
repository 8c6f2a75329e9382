// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// judged is an environment whose steps have a context.
type judged struct {
	scripted
	grade func(ctx context.Context, reply environment.Reply) (environment.Turn, error)
}

func (j *judged) Start(context.Context, environment.Task) (environment.Episode, error) {
	return &judgedEpisode{scriptedEpisode{env: &j.scripted}, j}, nil
}

type judgedEpisode struct {
	scriptedEpisode
	env *judged
}

func (e *judgedEpisode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	return e.env.grade(ctx, replies[0])
}

// TestJudgeUsageOfFaultsCounts checks that the usage of a judge includes failed tries, and that only the judgements of
// the try that counts are kept, within their limits.
func TestJudgeUsageOfFaultsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		env := &judged{grade: func(ctx context.Context, _ environment.Reply) (environment.Turn, error) {
			calls++
			recorder := environment.RecorderFrom(ctx)
			recorder.CountJudge(environment.JudgeUsage{Calls: 2, Errors: 1, Unreadable: 1, PromptTokens: 10, SampledTokens: 3})
			long := strings.Repeat("x", 2*rl.MaxJudgementText)
			for range rl.MaxJudgements + 1 {
				recorder.RecordJudgements([]environment.Judgement{{Criterion: "c", Rating: 1, Rationale: long + "\xff"}})
			}
			if calls == 1 {
				return environment.Turn{}, &environment.Fault{Kind: environment.JudgeFault, Err: errors.New("unreadable")}
			}
			return done(1), nil
		}}
		group := play(t, env, says("y"), singleMember(func(s *contract.Environment) { s.Retries = 1 }))
		want := rl.JudgeUsage{Calls: 4, Errors: 2, Unreadable: 2, PromptTokens: 20, SampledTokens: 6}
		if diff := cmp.Diff(want, group.Judge); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
		judgements := group.Members[0].Trajectories[0].Judgements
		if len(judgements) != rl.MaxJudgements || len(judgements[0].Rationale) > rl.MaxJudgementText ||
			judgements[0].Criterion != "c" {
			t.Errorf("%d judgements, the first is %+v", len(judgements), judgements[0])
		}
		if err := group.Validate(); err != nil {
			t.Error(err)
		}
	})
}

// TestTimeLimitPausesForAnOutage checks that a judge that is down for a day does not end an episode, and that the time
// after the outage counts.
func TestTimeLimitPausesForAnOutage(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		stop  string
	}{
		"a reply that is graded in time": {after: 30 * time.Second, stop: "stop"},
		"one that is graded too late":    {after: 2 * time.Minute, stop: "episode_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := &judged{grade: func(ctx context.Context, _ environment.Reply) (environment.Turn, error) {
					first, second := environment.RecorderFrom(ctx).Pause(), environment.RecorderFrom(ctx).Pause()
					time.Sleep(24 * time.Hour)
					first()
					first()
					time.Sleep(time.Hour)
					second()
					select {
					case <-ctx.Done():
						return environment.Turn{}, ctx.Err()
					case <-time.After(tc.after):
						return done(1), nil
					}
				}}
				env.finish = func() (environment.Turn, error) { return done(0), nil }
				group := play(t, env, says("y"), singleMember(func(s *contract.Environment) {
					s.Limits = playing.Limits{EpisodeSeconds: 60, OnLimit: playing.LimitGrade}
				}))
				if got := group.Members[0]; got.StopReason != tc.stop || got.Outcome != rl.Usable {
					t.Errorf("member is %+v, want the stop reason %s", got, tc.stop)
				}
			})
		})
	}
}

func TestJudgeSeedsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	var got environment.Reply
	env := &scripted{step: func(_ int, replies []environment.Reply) (environment.Turn, error) {
		got = replies[0]
		return done(1), nil
	}}
	for slot := range int64(4) {
		spec := singleMember(nil)
		spec.Key.Slot = slot
		play(t, env, says("y"), spec)
		if got.Seed == 0 || seen[got.Seed] {
			t.Errorf("slot %d: seed %d, which another slot has", slot, got.Seed)
		}
		seen[got.Seed] = true
	}
}
