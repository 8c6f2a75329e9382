// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// ResumedFrom is the run that a run continues.
type ResumedFrom struct {
	UID string `json:"uid"`
	// Step is the step of the loaded state.
	Step int64 `json:"step"`
	// UncountedSteps is the number of steps up to Step that are not part of Usage.
	UncountedSteps int64 `json:"uncountedSteps,omitempty"`
}

// EarlierRun is a run of the same namespace and name that existed before.
type EarlierRun struct {
	UID string `json:"uid"`
	// Step is the newest known step of that run.
	Step int64 `json:"step"`
	// SameSettings says that the settings that decide the weights are the same.
	SameSettings bool `json:"sameSettings,omitempty"`
}
