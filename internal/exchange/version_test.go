// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"strings"
	"testing"
)

// A learner and a worker of versions that are at most one apart speak the earlier one; others part with a sentence
// that names both.
func TestVersionsOfLearnerAndWorker(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		learner, worker int
		spoken          int
		problem         string
	}{
		"the same":                    {learner: 3, worker: 3, spoken: 3},
		"a learner that is older":     {learner: 2, worker: 3, spoken: 2},
		"a worker that is older":      {learner: 3, worker: 2, spoken: 2},
		"a learner that is too old":   {learner: 1, worker: 3, problem: "has version 3, and the learner reads version 1"},
		"a worker that is too old":    {learner: 4, worker: 2, problem: "has version 2, and the learner reads versions 3 and 4"},
		"no version before the first": {learner: 3, worker: 1, problem: "has version 1, and the learner reads versions 2 and 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			epoch := epochOf(1)
			epoch.Version = tc.learner
			l := newLearner()
			s := serve(t, "", epoch, l, Timing{})
			config := clientConfig(t, s.address)
			config.Version = tc.worker
			a := runClient(t, config, newWorker())
			if tc.problem != "" {
				err := take(t, "end", a.ended)
				if !errors.Is(err, ErrVersion) || !IsFinal(err) || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("Run: %v, want %q", err, tc.problem)
				}
				return
			}
			take(t, "answer", a.worker.replies)
			take(t, "renewal", l.renewed)
			take(t, "directive", a.worker.directives)
			if got := a.epoch().Version; got != tc.spoken {
				t.Errorf("version %d is spoken, want %d", got, tc.spoken)
			}
			if reply, err := a.Submit(t.Context(), encodedGroup(1, 2, 8)); err != nil || reply.Status != Accepted {
				t.Errorf("Submit: %v, %v", reply, err)
			}
		})
	}
}

// A worker does not believe a learner that answers in a version which it does not read.
func TestAnswersOfAnotherVersionAreRefused(t *testing.T) {
	t.Parallel()
	client, err := NewClient(clientConfig(t, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{0, 2} {
		epoch := epochOf(1)
		epoch.Version = version
		if err := client.observeEpoch(helloReplyToProto(epoch, HelloReply{})); !errors.Is(err, ErrVersion) {
			t.Errorf("an answer of version %d: %v, want ErrVersion", version, err)
		}
	}
	if client.Attempt() != 0 {
		t.Error("the attempt of a refused answer is noted")
	}
}
