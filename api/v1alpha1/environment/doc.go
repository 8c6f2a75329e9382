// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package environment is what a RewardEnvironment consists of: a dataset with a reward and an interaction, or a server
// of the Open Reward Standard.
package environment
