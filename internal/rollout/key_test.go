// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestKeyWatch(t *testing.T) {
	refused := failureOf(tinker.CategoryUnauthorized)
	type call struct {
		after time.Duration
		err   error
	}
	cases := map[string]struct {
		calls []call
		want  bool
	}{
		"one refusal, and no call after it": {[]call{{0, refused}}, true},
		"refusals for the patience": {[]call{{0, refused}, {10 * time.Second, refused},
			{15 * time.Second, refused}}, true},
		"a refusal that passes": {[]call{{0, refused}, {20 * time.Second, nil}}, false},
		"an outage says nothing of the key": {[]call{{0, refused},
			{20 * time.Second, failureOf(tinker.CategoryUnreachable)}}, true},
		"refusals that begin after an answer": {[]call{{0, refused}, {20 * time.Second, nil}, {5 * time.Second, refused}},
			false},
		"an outage": {[]call{{0, failureOf(tinker.CategoryUnreachable)}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gaveUp error
				k := watchKey(nil, 0)
				stop := k.start(func(err error) { gaveUp = err })
				var at time.Duration
				refusedNow := false
				for _, call := range tc.calls {
					time.Sleep(call.after)
					at += call.after
					k.observe(call.err)
					refusedNow = errors.Is(call.err, refused) || call.err != nil && refusedNow
				}
				time.Sleep(DefaultKeyPatience + time.Second - at)
				synctest.Wait()
				if got := errors.Is(gaveUp, ErrKeyRefused); got != tc.want {
					t.Errorf("after the patience: %v, want it given up: %t", gaveUp, tc.want)
				}
				if got := k.refused(); got != refusedNow {
					t.Errorf("refused = %t, want %t", got, refusedNow)
				}
				stop()
			})
		})
	}
}

// TestWorkerEndsWhenItsKeyIsRefused refuses the key once a group is stored, and checks that the worker ends as it does
// at SIGTERM. Another pod, which reads the Secret again, then replaces its pod.
func TestWorkerEndsWhenItsKeyIsRefused(t *testing.T) {
	b, s, api := newScriptedLearner(slots(1)...), newLearnerService(t), newEndpoint()
	s.serve(b, 1)
	r := s.start("worker-0", api, func(c *Config) { c.KeyPatience, c.Grace = time.Millisecond, time.Second })
	arrive(t, b, slots(1)...)
	api.change(func() {
		api.fail = func(int, tinker.SampleRequest) error { return failureOf(tinker.CategoryUnauthorized) }
	})
	b.put(trainKey(1))
	<-r.finished
	if err := r.stop(); !errors.Is(err, ErrKeyRefused) {
		t.Errorf("Run = %v, want ErrKeyRefused", err)
	}
	if reason := see(b, func() string { return b.released[trainKey(1)] }); reason != "drain" {
		t.Errorf("the lease was released for %q, want drain", reason)
	}
}
