// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// madeWith returns the Jobs that a manager with an image makes with a credentials Secret.
func madeWith(run *v1alpha1.TrainingRun, image, credentials string) (learnerJob, rollout *batchv1.Job) {
	settings := desired.Settings{Image: image}
	rollout = desired.RolloutJob(run, 1, credentials, settings)
	rollout.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	return desired.LearnerJob(run, 1, credentials, settings), rollout
}

func TestAction(t *testing.T) {
	run := &v1alpha1.TrainingRun{}
	run.Name, run.UID, run.Spec.Rollouts.Workers = "run", "0123456789", new(int32(2))
	admit.Default(run)
	newLearner, newRollout := madeWith(run, "new", "link-1")
	oldLearner, oldRollout := madeWith(run, "old", "link-1")
	rekeyedLearner, _ := madeWith(run, "new", "link-2")
	unmarked := newRollout.DeepCopy()
	delete(unmarked.Annotations, v1alpha1.AnnotationImage)
	changed := func(job *batchv1.Job, change func(*batchv1.Job)) *batchv1.Job {
		job = job.DeepCopy()
		change(job)
		return job
	}
	young := func(job *batchv1.Job) { job.CreationTimestamp = metav1.NewTime(now.Add(-time.Second)) }
	over := func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	}
	cases := map[string]struct {
		learner, rollout *batchv1.Job
		refused, rekeyed bool
		replaceIn        time.Duration
		want             action
	}{
		"no Job is created":                            {learner: newLearner, want: create},
		"a Job of the learner's build is kept":         {learner: newLearner, rollout: newRollout, want: keep},
		"a Job of the image before the attempt's":      {learner: newLearner, rollout: oldRollout, want: replace},
		"a Job of a manager that noted no image":       {learner: newLearner, rollout: unmarked, want: replace},
		"a learner of the image before keeps its Job":  {learner: oldLearner, rollout: oldRollout, want: keep},
		"a learner of the image before and newer ones": {learner: oldLearner, rollout: newRollout, want: keep},
		"other credentials than the learner's":         {learner: rekeyedLearner, rollout: newRollout, want: replace},
		"without a learner nothing is compared":        {rollout: oldRollout, want: keep},
		"workers of another version": {learner: newLearner, rollout: newRollout, refused: true,
			want: replace},
		"workers of another version, which just began": {learner: newLearner, rollout: changed(newRollout, young),
			refused: true, want: keep},
		"workers with an API key that was replaced": {learner: newLearner, rollout: newRollout, rekeyed: true,
			want: replace},
		"workers that await a repair for long": {learner: newLearner, rollout: changed(newRollout, young),
			replaceIn: -time.Second, want: replace},
		"workers that await a repair since a moment": {learner: newLearner, rollout: newRollout, replaceIn: time.Second,
			want: keep},
		"a Job that ended":         {learner: newLearner, rollout: changed(newRollout, over), want: replace},
		"a Job that ended at once": {learner: newLearner, rollout: changed(changed(newRollout, over), young), want: keep},
		"a Job whose pods are awaited": {learner: newLearner, rollout: changed(oldRollout, func(j *batchv1.Job) {
			j.DeletionTimestamp, j.Finalizers = &metav1.Time{Time: now}, []string{metav1.FinalizerDeleteDependents}
		}), want: replace},
		"a Job that is being deleted": {learner: newLearner,
			rollout: changed(oldRollout, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: now} }), want: keep},
		"a Job of another size": {learner: newLearner,
			rollout: changed(newRollout, func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(9)) }), want: scale},
		"overrides that have changed since the attempt": {learner: newLearner,
			rollout: changed(newRollout, func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationTemplate] = "x" }),
			want:    replace},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Observed{Attempt: 1, Learner: tc.learner, Job: tc.rollout, VersionRefused: tc.refused, KeyReplaced: tc.rekeyed}
			if tc.replaceIn != 0 {
				o.ReplaceAt = now.Add(tc.replaceIn)
			}
			if got := actionOf(run, o, "new", now); got != tc.want {
				t.Errorf("action %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWorkersOfANamedImageAreNotReplaced(t *testing.T) {
	run := &v1alpha1.TrainingRun{}
	run.Spec.Rollouts.Workers, run.Spec.Override(v1alpha1.TargetWorkers).Image = new(int32(2)), "own:1"
	admit.Default(run)
	learnerJob, rollout := madeWith(run, "new", "link-1")
	if got := actionOf(run, Observed{Attempt: 1, Learner: learnerJob, Job: rollout, VersionRefused: true}, "new",
		now); got != keep {
		t.Errorf("action %d, want %d", got, keep)
	}
}
