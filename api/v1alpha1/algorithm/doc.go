// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package algorithm has the settings that turn groups of episodes into optimizer steps. They are part of a TrainingRun
// and, with every default filled in, of the run file. The package imports only the standard library, since the pods of
// a run read it.
package algorithm
