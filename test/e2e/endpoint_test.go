// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// sharedEndpoint is a TinkerEndpoint that a test makes.
const sharedEndpoint = "shared"

// TestTinkerEndpoint trains behind the broker of a TinkerEndpoint, kills the pod that serves, and deletes the endpoint
// and creates it again. It checks that the run ends with the weights of an undisturbed run with a key of its own, that
// the broker has counted all tokens that the run used, and that a checkpoint can be downloaded without the key.
func TestTinkerEndpoint(t *testing.T) {
	want := baseline(t)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "shared-key"},
		StringData: map[string]string{"TINKER_API_KEY": "tml-e2e"}}
	if err := env.Create(t.Context(), key); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	budget := v1alpha1.EndpointBudget{Name: "all", Tokens: new(int64(1_000_000_000)), Period: "Forever"}
	create := func() {
		t.Helper()
		made := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: sharedEndpoint},
			Spec: v1alpha1.TinkerEndpointSpec{
				BaseURL:            "http://tinkersim." + systemNamespace,
				APIKeySecretKeyRef: ref.SecretKey{Name: key.Name, Key: "TINKER_API_KEY"},
				Allowed: v1alpha1.AllowedRuns{NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}},
				Budgets: []v1alpha1.EndpointBudget{budget},
			}}
		if err := env.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	create()
	t.Cleanup(func() {
		_ = env.Delete(t.Context(), &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: sharedEndpoint}})
	})
	run := start(t, "shared", func(spec *v1alpha1.TrainingRunSpec) {
		spec.Tinker = v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: sharedEndpoint}}
	})

	reached(t, run, 3)
	killBroker(t)
	reached(t, run, 7)
	if err := env.Delete(t.Context(),
		&v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: sharedEndpoint}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the run says that its endpoint is gone", func() bool {
		env.get(t, run.Namespace, run.Name, run)
		ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == v1alpha1.ReasonEndpointNotUsable
	})
	create()
	got := wantSameEnd(t, run, want)
	if got.status.Restarts != nil && *got.status.Restarts != 0 {
		t.Errorf("the run was restarted %d times, want that its learner waits", *got.status.Restarts)
	}

	// The namespace has no key: a pod with the run's token asks the broker.
	folder := filepath.Join(t.TempDir(), "adapter")
	tinker(t, "checkpoints", "download", run.Name, "--output", folder)
	if weights, err := os.Stat(filepath.Join(folder, "adapter_model.safetensors")); err != nil || weights.Size() == 0 {
		t.Errorf("the downloaded adapter: %v, want its weights", err)
	}

	spent := *got.status.Usage.PromptTokens + *got.status.Usage.SampledTokens + *got.status.Usage.TrainedTokens
	var counted v1alpha1.TinkerEndpoint
	eventually(t, time.Minute, "the broker reports what the run used", func() bool {
		if err := env.Get(t.Context(), client.ObjectKey{Name: sharedEndpoint}, &counted); err != nil {
			t.Fatal(err)
		}
		return len(counted.Status.Usage) == 1 && counted.Status.Usage[0].Tokens != nil &&
			*counted.Status.Usage[0].Tokens >= spent
	})
	// A killed broker counts at most one second too much, in which the run trains some steps, and never too little.
	if used, more := *counted.Status.Usage[0].Tokens, spent/2; used > spent+more {
		t.Errorf("the broker counts %d tokens, and the run %d, want at most %d more", used, spent, more)
	}
	if ready := meta.FindStatusCondition(counted.Status.Conditions, v1alpha1.ConditionReady); ready == nil ||
		ready.Status != metav1.ConditionTrue {
		t.Errorf("the endpoint ends with the conditions %+v, want Ready", counted.Status.Conditions)
	}
}

// killBroker kills the pod that holds the Lease of the shared endpoint.
func killBroker(t *testing.T) {
	t.Helper()
	holder, err := kubectlAnywhere("-n", systemNamespace, "get", "lease", endpoint.ObjectName(sharedEndpoint),
		"-o", "jsonpath={.spec.holderIdentity}")
	if err != nil {
		t.Fatalf("reading the Lease of the broker: %v\n%s", err, holder)
	}
	name, _, _ := strings.Cut(holder, "_")
	var pod corev1.Pod
	env.get(t, systemNamespace, name, &pod)
	env.signal(t, pod, "KILL")
}
