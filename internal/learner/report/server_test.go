// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestExposition(t *testing.T) {
	got := exposition(contract.HeartbeatReply{Attempt: 2, Progress: contract.Progress{Step: 3, Metrics: map[string]float64{"test/pass@1": 0.5}}})
	for _, line := range []string{"tinker_learner_attempt 2\n", "tinker_learner_step 3\n", "tinker_learner_metric{name=\"test/pass@1\"} 0.5\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("exposition lacks %q:\n%s", line, got)
		}
	}
}
