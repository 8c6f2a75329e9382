// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestVersionsOfLearnerAndWorker checks that a learner and a worker of any builds use the version of their run, or
// part with an error that names both versions.
func TestVersionsOfLearnerAndWorker(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		learner, worker int
		problem         string
	}{
		"the same version":   {learner: 3, worker: 3},
		"an earlier version": {learner: 2, worker: 2},
		"an older learner": {learner: 2, worker: 3,
			problem: "the worker's message has version 3, and the run has version 2"},
		"an older worker": {learner: 3, worker: 2, problem: "the worker's message has version 2, and the run has version 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			epoch := epochOf(1)
			epoch.Version = int32(tc.learner)
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
			if reply, err := a.Submit(t.Context(), encodedGroup(1, 2, 8)); err != nil || reply.Status != Accepted {
				t.Errorf("Submit: %v, %v", reply, err)
			}
		})
	}
}

// TestAnswersOfAnotherVersionAreRefused checks that a worker refuses a learner that answers in another version than
// the run's.
func TestAnswersOfAnotherVersionAreRefused(t *testing.T) {
	t.Parallel()
	client, err := NewClient(clientConfig(t, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{0, contract.FormatVersion + 1} {
		epoch := epochOf(1)
		epoch.Version = int32(version)
		if err := client.observeEpoch(helloReplyToProto(epoch, HelloReply{})); !errors.Is(err, ErrVersion) {
			t.Errorf("an answer of version %d: %v, want ErrVersion", version, err)
		}
	}
	if client.Attempt() != 0 {
		t.Errorf("the attempt of a refused answer is noted: got %v, want 0", client.Attempt())
	}
}
