// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// TestCauseBeforeMissingWorkers explains a run whose workers cannot become ready for a reason that Progressing names:
// this reason is the cause, and the missing workers follow from it.
func TestCauseBeforeMissingWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		pods, progressing, want problem.Code
	}{
		"a cause":                    {problem.WorkersMissing, problem.TokenizerBlocked, problem.TokenizerBlocked},
		"only missing workers":       {problem.WorkersMissing, problem.WorkersMissing, problem.WorkersMissing},
		"a cause of the pods":        {problem.WorkersCrashed, problem.TokenizerBlocked, problem.WorkersCrashed},
		"nothing known of the cause": {problem.WorkersMissing, "", problem.WorkersMissing},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
				set(run, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, "R", "")
				set(run, v1alpha1.ConditionProgressing, metav1.ConditionFalse, "R", "")
				for kind, code := range map[string]problem.Code{v1alpha1.ConditionPodsReady: tc.pods,
					v1alpha1.ConditionProgressing: tc.progressing} {
					if code != "" {
						run.Status.Codes = append(run.Status.Codes, v1alpha1.ConditionCode{Condition: kind, Code: string(code)})
					}
				}
			})
			if got := status.CodeOf(run.Status.Codes, decisive(run).Type); got != tc.want {
				t.Errorf("the code is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestRepairOfAPrivateAuthority checks that why names the field for the authority of each kind of object, instead of a
// general repair.
func TestRepairOfAPrivateAuthority(t *testing.T) {
	with := func(code problem.Code, change func(*v1alpha1.TrainingRun)) string {
		return explain(newRun("arithmetic", func(run *v1alpha1.TrainingRun) {
			set(run, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonEndpointNotTinker, "No.")
			run.Status.Codes = []v1alpha1.ConditionCode{{Condition: v1alpha1.ConditionProgressing, Code: string(code)}}
			change(run)
		}), nil, nil, start).Repair
	}
	environment := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Name: "sums"}}
	set := func(code problem.Code) string {
		environment.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}}
		environment.Status.Codes = []v1alpha1.ConditionCode{{Condition: v1alpha1.ConditionReady, Code: string(code)}}
		return explainEnvironment(environment, nil, nil, start).Repair
	}
	direct := func(*v1alpha1.TrainingRun) {}
	for name, tc := range map[string]struct {
		got  string
		want []string
	}{
		"an endpoint of the run": {with("EndpointAuthorityUnknown", direct), []string{"tinker.caBundleConfigMapKeyRef"}},
		"an endpoint whose authority was given": {with("EndpointAuthorityUnknown", func(run *v1alpha1.TrainingRun) {
			run.Spec.Tinker.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "authorities", Key: "ca.crt"}
		}), []string{`ConfigMap "authorities"`, "tinker.caBundleConfigMapKeyRef"}},
		"a TinkerEndpoint": {with("EndpointAuthorityUnknown", func(run *v1alpha1.TrainingRun) {
			run.Spec.Tinker.EndpointRef = &ref.Endpoint{Name: "shared"}
		}), []string{"kubectl describe tinkerendpoints shared"}},
		"a server of the data": {with("DataAuthorityUnknown", direct), []string{"volumeMounts", "SSL_CERT_FILE",
			"podOverrides", "chart's value pods"}},
		"a judge": {with("JudgeAuthorityUnknown", direct), []string{"SSL_CERT_FILE"}},
		"the store of the artifacts": {with("ArtifactsAuthorityUnknown", direct), []string{"SSL_CERT_FILE",
			"podOverrides[target=Learner]"}},
		"an environment": {set("EnvironmentAuthorityUnknown"), []string{"SSL_CERT_FILE", "pod of the RewardEnvironment"}},
	} {
		for _, words := range tc.want {
			if !strings.Contains(tc.got, words) {
				t.Errorf("%s: the repair is %q, want %q", name, tc.got, words)
			}
		}
		if strings.Contains(tc.got, "$(") || strings.Contains(tc.got, "baseURL") || strings.Contains(tc.got, "Repair the") {
			t.Errorf("%s: the repair is %q, want no general one", name, tc.got)
		}
	}
}

// TestWarningsThatArePast checks that warnings of pods are left out if they say nothing about the current state of a
// run.
func TestWarningsThatArePast(t *testing.T) {
	started := metav1.NewTime(start)
	pod := func(phase corev1.PodPhase, node string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "pod"}, Spec: corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: phase, StartTime: &started}}
	}
	for name, tc := range map[string]struct {
		pod          corev1.Pod
		reason, note string
		at           time.Duration
		want         int
	}{
		"no node, before it had one":    {pod(corev1.PodRunning, "n"), "FailedScheduling", "0/1 nodes", 0, 0},
		"no node yet":                   {pod(corev1.PodPending, ""), "FailedScheduling", "0/1 nodes", 0, 1},
		"a probe of a pod that is done": {pod(corev1.PodSucceeded, "n"), "Unhealthy", "Liveness probe failed", 0, 0},
		"readiness while it starts": {pod(corev1.PodRunning, "n"), "Unhealthy", "Readiness probe failed", 20 * time.Second,
			0},
		"readiness much later": {pod(corev1.PodRunning, "n"), "Unhealthy", "Readiness probe failed", 5 * time.Minute, 1},
		"a crash":              {pod(corev1.PodRunning, "n"), "BackOff", "restarting failed container", 0, 1},
	} {
		event := eventsv1.Event{Type: corev1.EventTypeWarning, Reason: tc.reason, Note: tc.note,
			EventTime: metav1.NewMicroTime(start.Add(tc.at)), Regarding: corev1.ObjectReference{Name: "w", UID: "pod"}}
		about := func(e eventsv1.Event) bool { return isOf(e, []corev1.Pod{tc.pod}) }
		if got := warnings(about, []corev1.Pod{tc.pod}, []eventsv1.Event{event}); len(got) != tc.want {
			t.Errorf("%s: %d warnings, want %d", name, len(got), tc.want)
		}
	}
}
