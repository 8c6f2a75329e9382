// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package environment has the parts of a RewardEnvironment: a dataset with a reward and an interaction, or a server of
// the Open Reward Standard. Run file and workers use these types with every default filled in. The package imports only
// the standard library and the package ref.
package environment
