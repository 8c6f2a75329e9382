// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
)

func TestAsFailure(t *testing.T) {
	cases := map[string]struct {
		err  error
		want tinker.FailedResult
	}{
		"a user error": {userError("bad %d", 1), tinker.FailedResult{Error: "bad 1", Category: tinker.CategoryUser}},
		"a name that exists": {fmt.Errorf("saving: %w", checkpoint.ErrExists),
			tinker.FailedResult{Error: "saving: checkpoint already exists", Category: tinker.CategoryUser}},
		"a corrupt checkpoint": {checkpoint.ErrCorrupt, tinker.FailedResult{Error: "checkpoint is corrupt",
			Category: tinker.CategoryServer}},
		"any other error": {errors.New("disk full"),
			tinker.FailedResult{Error: "disk full", Category: tinker.CategoryServer}},
		"a full queue": {sampling.ErrBusy, tinker.FailedResult{Error: sampling.ErrBusy.Error(),
			Category: tinker.CategoryServer}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, asFailure(tc.err)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
