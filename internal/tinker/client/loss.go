// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// The settings of a clipped loss as the Tinker API spells them.
const (
	SettingClipLow  = "clip_low_threshold"
	SettingClipHigh = "clip_high_threshold"
)

var lossNames = map[algorithm.LossName]tinker.LossName{
	algorithm.LossImportanceSampling: tinker.LossImportanceSampling,
	algorithm.LossPPO:                tinker.LossPPO,
	algorithm.LossCISPO:              tinker.LossCISPO,
	algorithm.LossGSPO:               tinker.LossGSPO,
}

// LossOf spells a loss as the Tinker API does, with all settings that it has: servers differ in their defaults.
func LossOf(loss algorithm.Loss) tinker.Loss {
	wire := tinker.Loss{Name: lossNames[loss.Name]}
	for name, value := range map[string]*float64{SettingClipLow: loss.ClipLow, SettingClipHigh: loss.ClipHigh} {
		if value == nil {
			continue
		}
		if wire.Config == nil {
			wire.Config = map[string]float64{}
		}
		wire.Config[name] = *value
	}
	return wire
}
