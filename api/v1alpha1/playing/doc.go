// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package playing has the settings by which a TrainingRun plays episodes: how tokens are drawn, what ends an episode,
// and how its rewards become one number. Run file and workers use these types with every default filled in. The package
// imports the standard library alone.
package playing
