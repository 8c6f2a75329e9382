// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newRun(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ml", Name: "arithmetic", UID: "0b4f1", Labels: map[string]string{LabelQueue: "team"},
	}}
	run.Spec.Tinker.APIKeySecretKeyRef = &ref.SecretKey{Name: "tinker", Key: "TINKER_API_KEY"}
	run.Spec.Model.Name = "tinkersim/byte-136k"
	admit.Default(run)
	for _, change := range changes {
		change(run)
	}
	return run
}

func podSets(t *testing.T, run *v1alpha1.TrainingRun) []PodSet {
	t.Helper()
	sets, err := PodSets(run, "", "", desired.Settings{Image: "tinker-operator:test"})
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// with returns a Workload of a run with conditions that hold.
func with(t *testing.T, run *v1alpha1.TrainingRun, conditions ...string) *Workload {
	t.Helper()
	w := Build(run, Versions[0], podSets(t, run), nil)
	for _, kind := range conditions {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: "Preempted", Message: "of " + kind})
	}
	return w
}

// TestName compares names with the results of jobframework.GetWorkloadNameForOwnerWithGVK of Kueue 0.19.2.
func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"arithmetic":             "trainingrun-arithmetic-db263",
		strings.Repeat("a", 200): "trainingrun-" + strings.Repeat("a", 200) + "-aa3ba",
	} {
		if got := Name(newRun(func(run *v1alpha1.TrainingRun) { run.Name = name })); got != want {
			t.Errorf("Name = %q, want %q", got, want)
		}
	}
}

// TestPodSetsStay checks which changes of a run change the digest of its Workload: the number of workers, the queue,
// the priority, the longest time and the annotations of a ProvisioningRequest do, and the key, the model, and other
// labels and annotations do not.
func TestPodSetsStay(t *testing.T) {
	run := newRun()
	digest := Digest(run, podSets(t, run))
	text := cmp.Diff(nil, podSets(t, run))
	if strings.Contains(text, "tinker-operator:test") || strings.Contains(text, "TINKER_API_KEY") {
		t.Errorf("the pod sets have an image or a Secret:\n%s", text)
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRun)
		same   bool
	}{
		"another key":        {func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.APIKeySecretKeyRef.Name = "other" }, true},
		"another model":      {func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "other" }, true},
		"a label of the run": {func(run *v1alpha1.TrainingRun) { run.Labels["argocd.argoproj.io/instance"] = "x" }, true},
		"more workers":       {func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(7)) }, false},
		"fewer workers do":   {func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.MinWorkers = new(int32(1)) }, false},
		"another queue":      {func(run *v1alpha1.TrainingRun) { run.Labels[LabelQueue] = "other" }, false},
		"an annotation":      {func(run *v1alpha1.TrainingRun) { run.Annotations = map[string]string{"team": "x"} }, true},
		"an annotation of a ProvisioningRequest": {func(run *v1alpha1.TrainingRun) {
			run.Annotations = map[string]string{"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60"}
		}, false},
		"a longest time":         {func(run *v1alpha1.TrainingRun) { run.Labels[LabelLongest] = "60" }, false},
		"a longest time of none": {func(run *v1alpha1.TrainingRun) { run.Labels[LabelLongest] = "none" }, true},
		"a class of priority":    {func(run *v1alpha1.TrainingRun) { run.Labels[LabelPriority] = "urgent" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := newRun(tc.change)
			if same := Digest(changed, podSets(t, changed)) == digest; same != tc.same {
				t.Errorf("the digest is the same: %t, want %t", same, tc.same)
			}
		})
	}
	none := newRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(0)) })
	if sets := podSets(t, none); len(sets) != 1 || sets[0].Name != LearnerSet {
		t.Errorf("a run without workers has %d pod sets, want the learner's alone", len(sets))
	}
}

func TestDecide(t *testing.T) {
	run := newRun()
	sets := podSets(t, run)
	queued, admitted := with(t, run), with(t, run, conditionQuotaReserved, conditionAdmitted)
	evicted := with(t, run, conditionQuotaReserved, conditionAdmitted, conditionEvicted)
	released := with(t, run, conditionEvicted)
	finished := with(t, run, conditionQuotaReserved, conditionAdmitted, conditionFinished)
	deleted := with(t, run, conditionQuotaReserved, conditionAdmitted)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	former := with(t, newRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(9)) }),
		conditionQuotaReserved, conditionAdmitted)
	for name, tc := range map[string]struct {
		workload  *Workload
		unmanaged bool
		facts     Facts
		stops     bool
		want      Action
	}{
		"none, and nothing is due":       {facts: Facts{Idle: true}, stops: true, want: Keep},
		"none, and an attempt is due":    {facts: Facts{Idle: true, Due: true}, stops: true, want: Create},
		"none, and pods of before":       {facts: Facts{Due: true}, stops: true, want: Keep},
		"none, and the run is suspended": {facts: Facts{Idle: true, Due: true, Suspended: true}, stops: true, want: Keep},
		"none, and no queue":             {unmanaged: true, facts: Facts{Idle: true, Due: true}, want: Keep},
		"queued":                         {workload: queued, facts: Facts{Idle: true, Due: true}, stops: true, want: Keep},
		"admitted":                       {workload: admitted, facts: Facts{Idle: true, Due: true}, want: Keep},
		"admitted, between attempts":     {workload: admitted, facts: Facts{Idle: true}, want: Keep},
		"evicted with pods":              {workload: evicted, facts: Facts{}, stops: true, want: Keep},
		"evicted without pods":           {workload: evicted, facts: Facts{Idle: true}, stops: true, want: Release},
		"released":                       {workload: released, facts: Facts{Idle: true, Due: true}, stops: true, want: Keep},
		"suspended with pods":            {workload: admitted, facts: Facts{Suspended: true}, want: Keep},
		"suspended without pods":         {workload: admitted, facts: Facts{Suspended: true, Idle: true}, want: Delete},
		"suspended while queued": {workload: queued, facts: Facts{Suspended: true, Idle: true}, stops: true,
			want: Delete},
		"over with pods": {workload: admitted, facts: Facts{Finished: true}, want: Keep},
		"over":           {workload: admitted, facts: Facts{Finished: true, Idle: true}, want: Finish},
		"over and said so": {workload: finished, facts: Facts{Finished: true, Idle: true}, stops: true,
			want: Keep},
		"tried again after its end":    {workload: finished, facts: Facts{Idle: true, Due: true}, stops: true, want: Delete},
		"being deleted":                {workload: deleted, facts: Facts{Idle: true, Due: true}, stops: true, want: Keep},
		"of other pods, with pods":     {workload: former, facts: Facts{}, stops: true, want: Keep},
		"of other pods, without pods":  {workload: former, facts: Facts{Idle: true, Due: true}, stops: true, want: Delete},
		"no queue any more, with pods": {workload: admitted, unmanaged: true, facts: Facts{}, want: Delete},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Managed: !tc.unmanaged, Version: Versions[0], Workload: tc.workload}.With(run, sets)
			if got := state.Decide(tc.facts); got != tc.want {
				t.Errorf("Decide = %d, want %d", got, tc.want)
			}
			if got := state.Stops(); got != tc.stops {
				t.Errorf("Stops = %t, want %t", got, tc.stops)
			}
		})
	}
}

// TestWhy quotes Kueue, and asks for a person only if the API server refuses the Workload.
func TestWhy(t *testing.T) {
	run := newRun()
	waits, reserved := with(t, run), with(t, run, conditionQuotaReserved)
	evicted, again := with(t, run, conditionQuotaReserved, conditionEvicted), with(t, run, conditionEvicted)
	meta.SetStatusCondition(&again.Status.Conditions, metav1.Condition{Type: conditionQuotaReserved,
		Status: metav1.ConditionFalse, Reason: "Pending", Message: "team red has the quota"})
	meta.SetStatusCondition(&waits.Status.Conditions, metav1.Condition{Type: conditionQuotaReserved,
		Status: metav1.ConditionFalse, Reason: "Pending", Message: "insufficient unused quota"})
	meta.SetStatusCondition(&reserved.Status.Conditions, metav1.Condition{Type: conditionAdmitted,
		Status: metav1.ConditionFalse, Reason: "UnsatisfiedChecks", Message: "not all checks are ready"})
	for name, tc := range map[string]struct {
		state  State
		code   problem.Code
		says   string
		action bool
	}{
		"no Workload":        {State{}, problem.Queued, "being made", false},
		"a refused Workload": {State{Refused: "forbidden"}, problem.WorkloadRefused, "forbidden", true},
		"not considered":     {State{Workload: with(t, run)}, problem.Queued, "not considered", false},
		"too little quota":   {State{Workload: waits}, problem.Queued, "insufficient unused quota", false},
		"an admission check": {State{Workload: reserved}, problem.Queued, "not all checks are ready", false},
		"evicted":            {State{Workload: evicted}, problem.Evicted, "Preempted: of Evicted", false},
		"queued again":       {State{Workload: again}, problem.Queued, "team red has the quota", false},
		"of other pods":      {State{Workload: waits, Digest: "other"}, problem.Queued, "has changed", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.state.Why()
			if got.Code != tc.code || !strings.Contains(got.Evidence, tc.says) || got.NeedsAction() != tc.action {
				t.Errorf("Why = %+v, want %s that says %q", got, tc.code, tc.says)
			}
		})
	}
}

func TestReleased(t *testing.T) {
	for reason, requeued := range map[string]bool{"Preempted": true, "NodeFailures": true, "Deactivated": false,
		"ClusterQueueStopped": false} {
		w := with(t, newRun(), conditionQuotaReserved, conditionAdmitted, conditionEvicted)
		w.Status.Admission = &Admission{ClusterQueue: "blue"}
		meta.FindStatusCondition(w.Status.Conditions, conditionEvicted).Reason = reason
		next := w.Released(now)
		if next.Admission != nil || meta.IsStatusConditionTrue(next.Conditions, conditionQuotaReserved) ||
			meta.IsStatusConditionTrue(next.Conditions, conditionAdmitted) {
			t.Errorf("%s: the reservation stays: %+v", reason, next)
		}
		if got := meta.IsStatusConditionTrue(next.Conditions, conditionRequeued); got != requeued {
			t.Errorf("%s: Requeued is %t, want %t", reason, got, requeued)
		}
		if w.Status.Admission == nil || !w.is(conditionAdmitted) {
			t.Errorf("%s: Released changed the Workload", reason)
		}
	}
}

func TestReady(t *testing.T) {
	w := with(t, newRun(), conditionQuotaReserved, conditionAdmitted)
	for _, step := range []struct {
		ready   bool
		reason  string
		changed bool
	}{
		{false, "WaitForStart", true}, {false, "WaitForStart", false}, {true, "Started", true}, {true, "Started", false},
		{false, "WaitForRecovery", true}, {false, "WaitForRecovery", false}, {true, "Recovered", true},
		{true, "Recovered", false}, {false, "WaitForRecovery", true},
	} {
		next, changed := w.Ready(now, step.ready)
		c := meta.FindStatusCondition(next.Conditions, conditionPodsReady)
		if changed != step.changed || c.Reason != step.reason || (c.Status == metav1.ConditionTrue) != step.ready {
			t.Errorf("Ready(%t) = %s %s, changed %t; want %s, changed %t", step.ready, c.Status, c.Reason, changed,
				step.reason, step.changed)
		}
		w.Status = next
	}
}

func TestPlacement(t *testing.T) {
	w := with(t, newRun(), conditionQuotaReserved, conditionAdmitted)
	spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}
	w.Status.Admission = &Admission{ClusterQueue: "blue", PodSetAssignments: []PodSetAssignment{
		{Name: LearnerSet, Flavors: map[string]string{"cpu": "spot", "memory": "spot", "nvidia.com/gpu": "h100"}},
		{Name: WorkersSet, Flavors: map[string]string{"cpu": "plain"}},
	}}
	w.Status.AdmissionChecks = []AdmissionCheckState{{Name: "provision", PodSetUpdates: []PodSetUpdate{
		{Name: LearnerSet, Annotations: map[string]string{"provisioned": "yes"}, Tolerations: []corev1.Toleration{spot}},
	}}}
	flavors := map[string]Flavor{
		"spot": {NodeLabels: map[string]string{"pool": "spot"}, Tolerations: []corev1.Toleration{spot}},
		"h100": {NodeLabels: map[string]string{"gpu": "h100"}}, "plain": {},
	}
	p, err := w.Placement(LearnerSet, flavors)
	if err != nil {
		t.Fatal(err)
	}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}}
	if err := p.Apply(&template); err != nil {
		t.Fatal(err)
	}
	want := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"kueue.x-k8s.io/podset": "learner", "kueue.x-k8s.io/local-queue-name": "team",
				"kueue.x-k8s.io/cluster-queue-name": "blue"},
			Annotations: map[string]string{"provisioned": "yes"},
		},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "a", "pool": "spot", "gpu": "h100"},
			Tolerations: []corev1.Toleration{spot}},
	}
	if diff := cmp.Diff(want, template); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	clash := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"pool": "own"}}}
	if err := p.Apply(&clash); err == nil || !strings.Contains(err.Error(), `pool is "own" and is to be "spot"`) {
		t.Errorf("Apply to a template with another node selector = %v, want both values", err)
	}
	if p, err = w.Placement(WorkersSet, flavors); err != nil || p.NodeSelector != nil || p.Annotations != nil {
		t.Errorf("the placement of the workers is %+v, %v, want labels alone", p, err)
	}
}

func TestWorkers(t *testing.T) {
	run := newRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(5)) })
	w := with(t, run, conditionQuotaReserved, conditionAdmitted)
	w.Status.Admission = &Admission{PodSetAssignments: []PodSetAssignment{{Name: WorkersSet, Count: new(int32(3))}}}
	for want, state := range map[int32]State{5: {}, 3: {Managed: true, Workload: w}} {
		if got := state.Workers(run); got != want {
			t.Errorf("Workers = %d, want %d", got, want)
		}
	}
}

// TestVersions encodes the priority as each version of the API has it.
func TestVersions(t *testing.T) {
	run := newRun()
	for version, field := range map[string]string{"v1beta2": "priorityClassRef", "v1beta1": "priorityClassSource"} {
		object, err := Build(run, version, podSets(t, run), &Priority{Value: 7, Class: PriorityClassRef{Group: Group,
			Kind: "WorkloadPriorityClass", Name: "urgent"}}).Object()
		if err != nil {
			t.Fatal(err)
		}
		spec := object.Object["spec"].(map[string]any)
		if spec[field] == nil || spec["priority"] != int64(7) {
			t.Errorf("%s: the spec is %v, want %s and the priority", version, spec, field)
		}
		back, err := Parse(object)
		if err != nil || Digest(run, back.Spec.PodSets) != Digest(run, podSets(t, run)) {
			t.Errorf("%s: the pod sets differ after a round trip, %v", version, err)
		}
	}
}

func TestBuildPassesOn(t *testing.T) {
	run := newRun(func(run *v1alpha1.TrainingRun) {
		run.Labels[LabelLongest] = "3600"
		run.Annotations = map[string]string{
			"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60", "team": "blue",
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
		}
	})
	w := Build(run, Versions[0], podSets(t, run), nil)
	delete(w.Annotations, annotationDigest)
	want := map[string]string{"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60"}
	if diff := cmp.Diff(want, w.Annotations); diff != "" {
		t.Errorf("annotations of the Workload (-want +got):\n%s", diff)
	}
	if got := w.Spec.MaximumExecutionTimeSeconds; got == nil || *got != 3600 {
		t.Errorf("maximumExecutionTimeSeconds is %v, want 3600", got)
	}
}
