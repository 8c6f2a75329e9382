// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const (
	namespace = "e2e"
	claimName = "runs"
	// steps is how many steps a run trains: enough to kill something in the middle.
	steps = 16
)

// prepare creates what every run needs: a namespace under the restricted profile, the key, the environment, and
// a claim for artifacts.
func prepare(t testing.TB, namespace string) {
	t.Helper()
	size := resource.MustParse("1Gi")
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tinker"},
			StringData: map[string]string{"TINKER_API_KEY": "tml-e2e"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claimName},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
			}},
		&v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "arithmetic"},
			Spec: v1alpha1.RewardEnvironmentSpec{
				Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: 99}},
				Reward:  &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
			}},
	}
	for _, object := range objects {
		if err := env.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// start creates a run that trains a few small steps; change may alter its spec.
func start(t testing.TB, name string, change func(*v1alpha1.TrainingRunSpec)) *v1alpha1.TrainingRun {
	t.Helper()
	return startIn(t, namespace, name, change)
}

// startIn starts a run in another namespace than start.
func startIn(t testing.TB, namespace, name string, change func(*v1alpha1.TrainingRunSpec)) *v1alpha1.TrainingRun {
	t.Helper()
	return startLabelled(t, namespace, name, nil, change)
}

// startLabelled does what startIn does, for a run with labels.
func startLabelled(t testing.TB, namespace, name string, labels map[string]string,
	change func(*v1alpha1.TrainingRunSpec)) *v1alpha1.TrainingRun {
	t.Helper()
	prepare(t, namespace)
	run := &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: v1alpha1.TrainingRunSpec{
			Model: v1alpha1.Model{Name: "tinkersim/byte-136k", LoraRank: new(int32(8))},
			Tinker: v1alpha1.Tinker{
				BaseURL:            "http://tinkersim." + systemNamespace,
				APIKeySecretKeyRef: &ref.SecretKey{Name: "tinker", Key: "TINKER_API_KEY"},
			},
			Environments: []v1alpha1.TrainingEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 12}},
				GroupSize:      8,
			}},
			Algorithm: &algorithm.Algorithm{
				TasksPerStep: 8,
				Steps:        int64(steps),
				Optimizer:    algorithm.Optimizer{LearningRate: 3.0e-4},
			},
			Artifacts: &v1alpha1.Artifacts{ClaimName: claimName},
		},
	}
	if change != nil {
		change(&run.Spec)
	}
	if err := env.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, run)
		}
	})
	return run
}

// describe logs the status and the pods of a run that failed.
func describe(t testing.TB, run *v1alpha1.TrainingRun) {
	for _, arguments := range [][]string{
		{"describe", "trainingrun", run.Name},
		{"get", "pods,jobs", "-o", "wide"},
		{"logs", "--tail=40", "--prefix", "-l", v1alpha1.LabelRunUID + "=" + string(run.UID)},
	} {
		arguments = append([]string{"--namespace", run.Namespace}, arguments...)
		output, err := kubectl(arguments...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// folder returns the folder of a run's artifacts in the volume, on this machine.
func folder(t testing.TB, run *v1alpha1.TrainingRun) string {
	t.Helper()
	var claim corev1.PersistentVolumeClaim
	eventually(t, podStart, "the claim is bound", func() bool {
		env.get(t, namespace, claimName, &claim)
		return claim.Spec.VolumeName != ""
	})
	state := filepath.Dir(kubeconfig)
	return filepath.Join(state, "volumes", claim.Spec.VolumeName, string(run.UID))
}

// reached waits until the row of the step is durable, just before the step is committed.
func reached(t testing.TB, run *v1alpha1.TrainingRun, step int) {
	t.Helper()
	pattern := filepath.Join(folder(t, run), "rows", fmt.Sprintf("*%d-*", step))
	eventually(t, trainingTime, fmt.Sprintf("run %s has reached step %d", run.Name, step), func() bool {
		rows, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return len(rows) > 0
	})
}

// result is the result of a run that is Complete.
type result struct {
	digest string
	status v1alpha1.TrainingRunStatus
}

// finish waits until the run is complete and returns the digest of its final weights.
func finish(t testing.TB, run *v1alpha1.TrainingRun) result {
	t.Helper()
	var current v1alpha1.TrainingRun
	eventually(t, 10*time.Minute, "run "+run.Name+" has succeeded", func() bool {
		env.get(t, run.Namespace, run.Name, &current)
		if current.Status.State == "Failed" {
			t.Fatalf("run %s has failed: %+v", run.Name, current.Status.Conditions)
		}
		return current.Status.State == "Succeeded"
	})
	if status.Latest(&current.Status) == nil || status.Latest(&current.Status).Step != run.Spec.Algorithm.Steps {
		t.Fatalf("the latest checkpoint of %s is %+v, want one of step %d", run.Name, status.Latest(&current.Status),
			run.Spec.Algorithm.Steps)
	}
	return result{digest: adapterDigest(t, status.Latest(&current.Status).State), status: current.Status}
}

// adapterDigest is the SHA-256 of the adapter in a checkpoint's archive.
func adapterDigest(t testing.TB, path string) string {
	t.Helper()
	body := env.archive(t, path)
	defer body.Close()
	reader := tar.NewReader(body)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the archive of %s holds no adapter", path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(filepath.Base(header.Name), "adapter_model") {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, reader); err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(sum.Sum(nil))
	}
}

// wantEachStepOnce checks that metrics.jsonl has every step of training exactly once.
func wantEachStepOnce(t testing.TB, run *v1alpha1.TrainingRun) {
	t.Helper()
	file, err := os.Open(filepath.Join(folder(t, run), "metrics.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("run %s has left no metrics.jsonl", run.Name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[int]int{}
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var row struct {
			Step   int      `json:"step"`
			Reward *float64 `json:"env/all/reward/total"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatalf("metrics.jsonl of %s: %v", run.Name, err)
		}
		if row.Reward != nil {
			seen[row.Step]++
		}
	}
	steps := int(run.Spec.Algorithm.Steps)
	for step := range steps {
		if seen[step] != 1 {
			t.Errorf("step %d of run %s is %d times in metrics.jsonl, want once", step, run.Name, seen[step])
		}
	}
	if len(seen) != steps {
		t.Errorf("metrics.jsonl of %s has %d steps, want %d", run.Name, len(seen), steps)
	}
}
