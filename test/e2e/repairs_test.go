// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && repairs

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

// endless makes a run last until its test has ended.
func endless(spec *v1alpha1.TrainingRunSpec) {
	spec.Algorithm.Steps = 100000
	spec.Artifacts = nil
	spec.Rollouts.Workers = new(int32(1))
}

// awaitReason waits until a condition has a reason, and returns its message.
func awaitReason(t *testing.T, run *v1alpha1.TrainingRun, kind, reason string) string {
	t.Helper()
	var c *metav1.Condition
	eventually(t, 3*time.Minute, kind+" of "+run.Name+" has the reason "+reason, func() bool {
		env.get(t, run.Namespace, run.Name, run)
		c = meta.FindStatusCondition(run.Status.Conditions, kind)
		return c != nil && c.Reason == reason
	})
	return c.Message
}

// awaitStep waits until a run has committed a step.
func awaitStep(t *testing.T, run *v1alpha1.TrainingRun, step int64) {
	t.Helper()
	eventually(t, 5*time.Minute, run.Name+" has committed a step", func() bool {
		env.get(t, run.Namespace, run.Name, run)
		return run.Status.Step != nil && *run.Status.Step >= step
	})
}

// wantContinued fails unless the run makes progress again within a limit after the repair. The time to the next step
// depends on the machine, and is only logged.
func wantContinued(t *testing.T, run *v1alpha1.TrainingRun, repaired time.Time, limit time.Duration) {
	t.Helper()
	env.get(t, run.Namespace, run.Name, run)
	before := int64(0)
	if run.Status.Step != nil {
		before = *run.Status.Step
	}
	var took time.Duration
	eventually(t, 5*time.Minute, run.Name+" makes progress", func() bool {
		env.get(t, run.Namespace, run.Name, run)
		took = time.Since(repaired)
		attempts := run.Status.Attempts
		return meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionProgressing) && len(attempts) > 0 &&
			attempts[0].FromStep != nil
	})
	if took > limit {
		t.Errorf("run %s made progress %.0f s after the repair, want at most %v", run.Name, took.Seconds(), limit)
	}
	awaitStep(t, run, before+1)
	t.Logf("%s: progress %.0f s after the repair (at most %v), the next step after %.0f s", run.Name, took.Seconds(),
		limit, time.Since(repaired).Seconds())
	if run.Status.FailuresSinceCheckpoint != nil && *run.Status.FailuresSinceCheckpoint != 0 {
		t.Errorf("the wait of run %s cost %d of the restart budget", run.Name, *run.Status.FailuresSinceCheckpoint)
	}
	if meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("run %s is Stalled although it makes progress", run.Name)
	}
	if t.Failed() {
		return // so that the run can be described
	}
	if err := env.Delete(t.Context(), run); err != nil {
		t.Error(err)
	}
}

// change changes an object at the API server.
func change(t *testing.T, run *v1alpha1.TrainingRun, alter func(*v1alpha1.TrainingRunSpec)) {
	t.Helper()
	env.get(t, run.Namespace, run.Name, run)
	before := run.DeepCopy()
	alter(&run.Spec)
	if err := env.Patch(t.Context(), run, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// TestRepairs breaks a requirement of each run, repairs it, and measures how long the run takes to continue by itself.
func TestRepairs(t *testing.T) {
	prepare(t, namespace)
	// The runs share one simulator, so its outage comes after the other repairs.
	t.Run("beside one another", func(t *testing.T) {
		for name, repair := range map[string]func(*testing.T){
			"an API key": repairKey, "a quota": repairQuota, "an image": repairImage, "a model": repairModel,
			"a path in baseURL": repairPath,
			"an init container": repairInitContainer,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				repair(t)
			})
		}
	})
	t.Run("an endpoint", repairEndpoint)
}

// repairKey replaces the key in a Secret by a key that is refused, deletes all pods, and restores the key.
func repairKey(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "repair"},
		StringData: map[string]string{"KEY": "tml-e2e"}}
	if err := env.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	set := func(key string) {
		secret.StringData = map[string]string{"KEY": key}
		if err := env.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	run := start(t, "repair-key", func(spec *v1alpha1.TrainingRunSpec) {
		endless(spec)
		spec.Tinker.APIKeySecretKeyRef = &ref.SecretKey{Name: "repair", Key: "KEY"}
	})
	awaitStep(t, run, 1)
	set("revoked")
	env.deletePods(t, append(env.pods(t, run, v1alpha1.RoleLearner), env.pods(t, run, v1alpha1.RoleRollout)...))
	awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonKeyRefused)
	// A learner that has just begun to try the key of its pod takes longest.
	set("tml-e2e")
	wantContinued(t, run, time.Now(), time.Minute)
}

// repairQuota lifts a quota of 0 pods, once Kubernetes tries to create pods only at long intervals.
func repairQuota(t *testing.T) {
	const class = "repair-quota" // The quota applies to the pods of one priority class.
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: class},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
				ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class},
			}}},
		},
	}
	for _, object := range []client.Object{priority, quota} {
		if err := env.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	run := start(t, "repair-quota", func(spec *v1alpha1.TrainingRunSpec) {
		endless(spec)
		spec.Override(v1alpha1.TargetAll).PriorityClassName = class
	})
	message := awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonCreateRefused)
	if !strings.Contains(message, "quota") {
		t.Errorf("Ready says %q, want the API server's words about the quota", message)
	}
	awaitReason(t, run, v1alpha1.ConditionStalled, v1alpha1.ReasonCreateRefused)
	if err := env.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	wantContinued(t, run, time.Now(), 2*time.Minute)
}

// repairImage loads a missing image, once the kubelet tries to pull it only at long intervals.
func repairImage(t *testing.T) {
	const missing = "tinker-operator:repaired"
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := hack(t.Context(), "pack-image.sh", missing, archive, "65532", ".cache/image", "manager", "learner",
		"rollout", "tinkersim"); err != nil {
		t.Fatal(err)
	}
	run := start(t, "repair-image", func(spec *v1alpha1.TrainingRunSpec) {
		endless(spec)
		spec.Override(v1alpha1.TargetAll).Image = missing
	})
	awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonImagePullFailed)
	awaitReason(t, run, v1alpha1.ConditionStalled, v1alpha1.ReasonImagePullFailed)
	if err := hack(t.Context(), "cluster/cluster", "load", archive); err != nil {
		t.Fatal(err)
	}
	wantContinued(t, run, time.Now(), 2*time.Minute)
}

// repairModel corrects the name of a known model that the endpoint does not offer.
func repairModel(t *testing.T) {
	file, err := vocabularyFile()
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(file)
	hub := []corev1.EnvVar{{Name: "HF_ENDPOINT", Value: "http://tinkersim." + systemNamespace}}
	run := start(t, "repair-model", func(spec *v1alpha1.TrainingRunSpec) {
		endless(spec)
		spec.Model.Name = "Qwen/Qwen3-32B"
		spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: foreignModel, SHA256: hex.EncodeToString(digest[:])}
		spec.Override(v1alpha1.TargetAll).Env = hub
		spec.Environments[0].GroupSize = 4
		spec.Algorithm.TasksPerStep = 2
	})
	message := awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonModelUnknown)
	if !strings.Contains(message, "The endpoint does not know the model Qwen/Qwen3-32B") {
		t.Errorf("Ready says %q, want the model", message)
	}
	awaitReason(t, run, v1alpha1.ConditionStalled, v1alpha1.ReasonModelUnknown)
	change(t, run, func(spec *v1alpha1.TrainingRunSpec) { spec.Model.Name = foreignModel })
	wantContinued(t, run, time.Now(), time.Minute)
}

// repairPath drops a path from baseURL at which the endpoint has no Tinker API.
func repairPath(t *testing.T) {
	run := start(t, "repair-path", func(spec *v1alpha1.TrainingRunSpec) {
		endless(spec)
		spec.Tinker.BaseURL += "/v1"
	})
	message := awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonEndpointNotTinker)
	if !strings.Contains(message, "Drop /v1 from tinker.baseURL") {
		t.Errorf("Ready says %q, want the repair", message)
	}
	awaitReason(t, run, v1alpha1.ConditionStalled, v1alpha1.ReasonEndpointNotTinker)
	change(t, run, func(spec *v1alpha1.TrainingRunSpec) {
		spec.Tinker.BaseURL = strings.TrimSuffix(spec.Tinker.BaseURL, "/v1")
	})
	wantContinued(t, run, time.Now(), time.Minute)
}

// repairEndpoint stops the simulator for a minute, after which its clients try again at their longest interval.
func repairEndpoint(t *testing.T) {
	run := start(t, "repair-endpoint", endless)
	awaitStep(t, run, 1)
	scale := func(replicas string) {
		if err := command(t.Context(), "kubectl", "--namespace", systemNamespace, "scale", "deployment", "tinkersim",
			"--replicas="+replicas); err != nil {
			t.Fatal(err)
		}
	}
	scale("0")
	defer scale("1") // also if the test ends early
	awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonEndpointUnreachable)
	down := time.Now()
	eventually(t, 2*time.Minute, "the outage has lasted a minute", func() bool { return time.Since(down) > time.Minute })
	scale("1")
	eventually(t, time.Minute, "the simulator is ready", func() bool {
		var deployment appsv1.Deployment
		env.get(t, systemNamespace, "tinkersim", &deployment)
		return deployment.Status.ReadyReplicas == 1
	})
	wantContinued(t, run, time.Now(), 30*time.Second)
}
