// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// formerUID returns the UID of another run to which the status belongs, for example because the run was restored from a
// backup with its status; empty if the status is the run's own. If the status does not name its run, the names of its
// checkpoints do: formerUID then returns the other run's rl.RunTag.
func formerUID(run *v1alpha1.TrainingRun) string {
	switch uid := run.Status.RunUID; uid {
	case string(run.UID):
		return ""
	case "":
		return formerTag(run)
	default:
		return uid
	}
}

func formerTag(run *v1alpha1.TrainingRun) string {
	for _, c := range run.Status.Checkpoints {
		last := c.State[strings.LastIndexByte(c.State, '/')+1:]
		if name, err := rl.ParseCheckpointName(last); err == nil && name.Run != rl.RunTag(string(run.UID)) {
			return name.Run
		}
	}
	return ""
}

// detach removes the attempts from a status that was restored with a run, since none of them is the run's own, and
// writes the status. The progress of the former run stays. A run that was over does not change unless it continues.
func (r *Reconciler) detach(ctx context.Context, run *v1alpha1.TrainingRun) error {
	former := formerUID(run)
	over := status.RunFinished(run) && !goesOn(run)
	if former == "" || over || run.Status.StartTime == nil && run.Status.RunUID != "" {
		return nil
	}
	before := run.DeepCopy()
	run.Status = status.WithoutAttempts(before.Status)
	run.Status.RunUID = former
	if err := record.Status(ctx, r.Client, before, run); err != nil {
		return err
	}
	r.memory.written(before, run, r.Now())
	return nil
}

// restored blocks a run whose status belongs to another run until spec.resumeFrom names that run. If it silently began
// anew, it would pay for all steps again.
func restored(run *v1alpha1.TrainingRun) *problem.Problem {
	former := formerUID(run)
	if former == "" || resumes(run, former) {
		return nil
	}
	uid := former
	if !strings.Contains(uid, "-") {
		uid = fmt.Sprintf("%s... (the first digits of metadata.uid in the backup)", former)
	}
	return &problem.Problem{Code: problem.StatusRestored, Evidence: fmt.Sprintf("%s, which reached step %d", uid,
		ptr.Deref(run.Status.Step, 0))}
}

// resumes reports whether spec.resumeFrom names a run. former is the UID of the run, or its rl.RunTag.
func resumes(run *v1alpha1.TrainingRun, former string) bool {
	from := run.Spec.ResumeFrom
	return from != nil && (from.UID == former || rl.RunTag(from.UID) == former)
}

// ownerOfStatus returns the UID to which the next status belongs: the run's own from its first attempt on.
func ownerOfStatus(run *v1alpha1.TrainingRun, p plan) string {
	if former := formerUID(run); former != "" && p.start == 0 {
		return former
	}
	return string(run.UID)
}

// earlierRun says in a message that the run began anew beside an earlier run of its name; empty if it did not.
func earlierRun(found *v1alpha1.EarlierRun) string {
	switch {
	case found == nil:
		return ""
	case !ptr.Deref(found.SameSettings, false):
		return fmt.Sprintf(" An earlier run of this name, %s, reached step %d with other settings; this run began anew.",
			found.UID, found.Step)
	default:
		return fmt.Sprintf(" An earlier run of this name, %s, reached step %d with the same settings; this run began anew. "+
			"To continue the earlier "+
			"run, create this one again with spec.resumeFrom.uid, or set it before a step is committed.", found.UID, found.Step)
	}
}
