// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// SettingsFixed reports whether the settings that decide the weights can no longer be changed. If a former version of
// the operator started the run, the status does not say so until this version has written it.
func SettingsFixed(run *v1alpha1.TrainingRun) bool {
	return run.Status.StartTime != nil && ptr.Deref(run.Status.SettingsFixed, true)
}
