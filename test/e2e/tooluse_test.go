// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// foreignModel is a model that the simulator serves with the vocabulary of its family.
const foreignModel = "Qwen/Qwen3-8B"

// vocabularyFile returns the part of the family's vocabulary that this repository has.
func vocabularyFile() ([]byte, error) {
	packed, err := os.ReadFile(filepath.Join(root, "internal", "renderer", "families", "testdata", "tokenizers",
		"qwen3.json.gz"))
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// publishVocabulary creates the ConfigMap in which the chart's simulator reads the vocabulary.
func publishVocabulary(ctx context.Context) error {
	file, err := vocabularyFile()
	if err != nil {
		return fmt.Errorf("reading the vocabulary: %w", err)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "vocabulary"},
			Data:       map[string]string{"tokenizer.json": string(file)},
		},
	} {
		if err := env.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("publishing the vocabulary: %w", err)
		}
	}
	return nil
}

// TestToolUse trains a model of a real family: learner and workers fetch its tokenizer from the simulator, which
// serves it as a hub does, render conversations with tools in the family's format, and parse the replies.
func TestToolUse(t *testing.T) {
	prepare(t, namespace)
	file, err := vocabularyFile()
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(file)
	environment := &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "calculator"},
		Spec: v1alpha1.RewardEnvironmentSpec{
			Dataset:     &environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: 9}},
			Reward:      &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
			Interaction: &environment.Interaction{ToolUse: &environment.ToolUse{}},
		},
	}
	if err := env.Create(t.Context(), environment); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	hub := []corev1.EnvVar{{Name: "HF_ENDPOINT", Value: "http://tinkersim." + systemNamespace}}
	run := start(t, "tools", func(spec *v1alpha1.TrainingRunSpec) {
		spec.Model.Name = foreignModel
		spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: foreignModel, SHA256: hex.EncodeToString(digest[:])}
		spec.Override(v1alpha1.TargetAll).Env = hub
		spec.Environments[0].Name = "calculator"
		spec.Environments[0].GroupSize = 4
		spec.Environments[0].Sampling.MaxTokens = 24
		spec.Environments[0].Limits.Turns = 3
		spec.Algorithm.TasksPerStep = 2
	})
	if got := finish(t, run).status.TokenizerSHA256; got != hex.EncodeToString(digest[:]) {
		t.Errorf("the run says that its tokenizer is %q, want %x", got, digest)
	}
}
