// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// TestTimeOfAgents plays agents whose time is over between their requests, or after a reply that took too long. An
// agent that learns of it and ends by itself is scored; an agent that does not is ended at once.
func TestTimeOfAgents(t *testing.T) {
	cases := map[string]struct {
		firsts       []string
		works, takes time.Duration
		knows        bool
		want         rl.Outcome
		after        time.Duration
	}{
		"between requests":        {[]string{"q"}, 11 * time.Second, 0, true, rl.Usable, 16 * time.Second},
		"by a reply":              {[]string{"q"}, 0, 11 * time.Second, true, rl.Usable, 16 * time.Second},
		"in time":                 {[]string{"q"}, time.Second, time.Second, true, rl.Usable, 7 * time.Second},
		"with several branches":   {[]string{"q", "r"}, 6 * time.Second, 0, true, rl.Deadline, 17 * time.Second},
		"one that does not know":  {[]string{"q"}, 11 * time.Second, 0, false, rl.Deadline, 10 * time.Second},
		"a reply, without a word": {[]string{"q"}, 0, 11 * time.Second, false, rl.Deadline, 11 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := policyFunc(func(ctx context.Context, request Request) (Sample, error) {
					time.Sleep(tc.takes)
					sample, err := (&seeded{}).Sample(ctx, request)
					sample.Took = tc.takes
					return sample, err
				})
				begin := time.Now()
				group := play(t, agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
					var expired <-chan struct{}
					if tc.knows {
						expired = p.(environment.TimedPolicy).Expired()
					}
					var limit *environment.LimitError
					for _, first := range tc.firsts {
						_, err := say(ctx, p, "", user(first))
						if errors.As(err, &limit) {
							break
						}
						select {
						case <-time.After(tc.works):
						case <-ctx.Done():
							return environment.Turn{}, ctx.Err()
						}
					}
					if wait.IsClosed(expired) {
						if _, err := p.Complete(ctx, environment.Completion{Messages: []chat.Message{user("late")}}); !errors.As(err,
							&limit) || limit.Limit != environment.LimitEpisodeSeconds {
							t.Errorf("a request after the end of the time: %v, want the limit", err)
						}
					}
					select {
					case <-time.After(5 * time.Second): // the grace
					case <-ctx.Done():
						return environment.Turn{}, ctx.Err()
					}
					return done(1), nil
				}), policy, singleMember(func(e *contract.Environment) { e.Limits.EpisodeSeconds = 10 }))
				if got := time.Since(begin); group.Outcome != tc.want || got != tc.after {
					t.Errorf("outcome %v (%s) after %v, want %v after %v", group.Outcome, group.Reason, got, tc.want, tc.after)
				}
			})
		})
	}
}
