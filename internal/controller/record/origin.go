// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// originEvents says that a run continues another run, or that it began anew beside an earlier run of its name.
func originEvents(before, after *v1alpha1.TrainingRunStatus) []Event {
	var all []Event
	if from := after.ResumedFrom; from != nil && before.ResumedFrom == nil {
		note := fmt.Sprintf("The run continues run %s at step %d.", from.UID, from.Step)
		if n := ptr.Deref(from.UncountedSteps, 0); n > 0 {
			note += fmt.Sprintf(" status.usage lacks %d of these steps, whose rows the artifact store does not have; budget "+
				"does not count them.", n)
		}
		all = append(all, Normal(eventRunContinued, "Continue", note))
	}
	if found := after.EarlierRun; found != nil && before.EarlierRun == nil {
		note := fmt.Sprintf("Run %s had this name and reached step %d", found.UID, found.Step)
		if ptr.Deref(found.SameSettings, false) {
			all = append(all, Warning(eventEarlierRun, "Begin",
				note+" with the same settings. This run begins anew. To continue the earlier run, "+
					"set spec.resumeFrom.uid before a step is committed."))
		} else {
			all = append(all, Normal(eventEarlierRun, "Begin", note+" with other settings. This run begins anew."))
		}
	}
	return all
}
