// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ResumeFrom names the run that a run continues.
type ResumeFrom struct {
	// uid is the metadata.uid of the deleted run to continue. The states of the deleted run are at the endpoint. Its rows
	// are in the artifact store, in the folder whose name is the uid. The settings that decide the weights must be the
	// same.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	// +kubebuilder:validation:MaxLength=36
	// +required
	UID string `json:"uid"`
}

// ResumedFrom is the run that a run continues.
type ResumedFrom struct {
	// uid is the uid of the former run.
	// +kubebuilder:validation:MaxLength=64
	// +required
	UID string `json:"uid"`
	// step is the step of the former run's state that was loaded.
	// +required
	Step int64 `json:"step"`
	// uncountedSteps is the number of the former run's steps that status.usage does not contain, because the artifact
	// store has no rows of these steps.
	// +optional
	UncountedSteps *int64 `json:"uncountedSteps,omitempty"`
}

// EarlierRun is a run of the same namespace and name that existed before.
type EarlierRun struct {
	// uid is the uid of the earlier run.
	// +kubebuilder:validation:MaxLength=64
	// +required
	UID string `json:"uid"`
	// step is the newest step of the earlier run that the endpoint or the artifact store knows.
	// +required
	Step int64 `json:"step"`
	// sameSettings says whether the earlier run had the settings of this run. If so, spec.resumeFrom can continue the
	// earlier run.
	// +optional
	SameSettings *bool `json:"sameSettings,omitempty"`
}
