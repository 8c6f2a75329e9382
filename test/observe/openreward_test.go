// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build observe

package observe

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openrewardtest"
)

const openRewardRecord = "../../internal/learner/tracking/testdata/openreward.txt"

// TestOpenRewardRecord uploads rollouts to a recording server with the official package, and compares the events with
// the record that the learner's tests read.
func TestOpenRewardRecord(t *testing.T) {
	server := openrewardtest.New()
	defer server.Close()
	python(t, "openreward", "openreward_calls.py", server.URL)
	for _, problem := range server.Problems() {
		t.Error(problem)
	}
	events, err := openrewardtest.Events(server.Requests())
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(events, "\n") + "\n"
	if *update {
		if err := os.WriteFile(openRewardRecord, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(openRewardRecord)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("requests of the package (-record +now):\n%s", diff)
	}
}
