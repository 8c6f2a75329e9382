// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && repairs

package e2e

import (
	"encoding/pem"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// repairInitContainer runs an init container that writes the learner's certificate authorities to a file in a volume
// that both containers mount. The init container fails until the ConfigMap with the authorities and the file's folder
// exists, and the learner does not start without the file.
func repairInitContainer(t *testing.T) {
	const source, writer = "repair-init-container", "tinker-operator:writer"
	folder := t.TempDir()
	archive := filepath.Join(folder, "image.tar")
	for _, arguments := range [][]string{
		{"env", "CGO_ENABLED=0", "go", "-C", "hack/cluster/images", "build", "-o", folder, "./probe"},
		{"hack/pack-image.sh", writer, archive, "65532", folder, "probe"},
		{"hack/cluster/cluster", "load", archive},
	} {
		if err := command(t.Context(), arguments[0], arguments[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	variable := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: source}, Key: name, Optional: new(true),
		}}}
	}
	run := start(t, "repair-init-container", func(spec *v1alpha1.TrainingRunSpec) {
		endless(spec)
		mounts := []v1alpha1.VolumeMount{{Name: "authorities", MountPath: "/authorities"}}
		*spec.Override(v1alpha1.TargetLearner) = v1alpha1.PodOverrides{
			Volumes:      []v1alpha1.Volume{{Name: "authorities", EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			VolumeMounts: mounts,
			Env:          []corev1.EnvVar{{Name: "TINKER_CA_FILE", Value: "/authorities/ca.crt"}},
			InitContainers: []v1alpha1.InitContainer{{
				Name: "write", Image: writer, VolumeMounts: mounts, Env: []corev1.EnvVar{variable("FOLDER"),
					variable("AUTHORITIES")},
				Args: []string{"write", "/authorities/$(FOLDER)/ca.crt", "$(AUTHORITIES)"},
			}},
		}
	})
	message := awaitReason(t, run, v1alpha1.ConditionReady, v1alpha1.ReasonPodInvalid)
	for _, want := range []string{`"write" exited with code 1`, "no such file or directory",
		"podOverrides[target=Learner].initContainers"} {
		if !strings.Contains(message, want) {
			t.Errorf("Ready says %q, want %q", message, want)
		}
	}
	eventually(t, 3*time.Minute, "the init container has failed twice", func() bool {
		env.get(t, run.Namespace, run.Name, run)
		return len(run.Status.Attempts) > 1
	})
	// Both are whole seconds.
	if wait := run.Status.Attempts[0].StartTime.Sub(run.Status.Attempts[1].CompletionTime.Time); wait < 44*time.Second {
		t.Errorf("the second attempt began %v after the first had failed, want 45 s", wait)
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	authorities := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := env.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: source},
		Data:       map[string]string{"FOLDER": ".", "AUTHORITIES": string(authorities)},
	}); err != nil {
		t.Fatal(err)
	}
	// An attempt begins 45 s after the last one has failed.
	wantContinued(t, run, time.Now(), 2*time.Minute)
}
