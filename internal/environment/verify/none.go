// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// None rewards no reply: a teacher alone decides.
type None struct{}

// Grade implements Grader. All replies earn 0, so that no advantage comes of them.
func (None) Grade(context.Context, dataset.Row, environment.Reply) (Score, error) {
	return Score{}, nil
}
