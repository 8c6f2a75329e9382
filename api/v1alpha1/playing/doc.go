// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package playing has the settings of episodes in a TrainingRun: how tokens are drawn, when an episode ends, and how
// its rewards are combined. Run file and workers use these types with every default filled in. The package imports only
// the standard library.
package playing
