// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the custom resource definitions.
package crd

import _ "embed"

// TrainingRuns is the definition of the kind TrainingRun, as YAML.
//
//go:embed bases/rl.tinker-operator.dev_trainingruns.yaml
var TrainingRuns []byte

// RewardEnvironments is the definition of the kind RewardEnvironment, as YAML.
//
//go:embed bases/rl.tinker-operator.dev_rewardenvironments.yaml
var RewardEnvironments []byte

// TinkerEndpoints is the definition of the kind TinkerEndpoint, as YAML.
//
//go:embed bases/rl.tinker-operator.dev_tinkerendpoints.yaml
var TinkerEndpoints []byte
