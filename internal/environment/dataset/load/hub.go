// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

func (l *Loader) loadHub(ctx context.Context, definition contract.Dataset) (*dataset.Table, *contract.DataContents, error) {
	return nil, nil, errors.New("x")
}
