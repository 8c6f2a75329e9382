// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package try

import (
	"context"
	"errors"
)

func (*trial) startRunner(context.Context) (stop func(), err error) {
	return nil, errors.New("reward.python and interaction.python: functions run on Linux alone")
}
