// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

func TestNoneGivesAllRepliesThe0ThatTeachesNothing(t *testing.T) {
	got, err := None{}.Grade(t.Context(), dataset.Row{}, environment.Reply{})
	if diff := cmp.Diff(Score{}, got); err != nil || diff != "" {
		t.Errorf("Grade: %v, score (-want +got):\n%s", err, diff)
	}
}
