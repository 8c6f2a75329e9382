// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package datafiles compares the ConfigMap of a data set with the contents that a probe read. ConfigMaps are read, not
// watched: a watch would need the right to list all of them, and memory for their contents.
package datafiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Files are the digests of the keys that a definition reads of a ConfigMap, "" for a key that does not exist. They are
// nil for a definition that reads no ConfigMap.
type Files map[string]string

// Read returns the files of a definition in a namespace.
func Read(ctx context.Context, reader client.Reader, namespace string, definition contract.Definition) (Files, error) {
	data := definition.Dataset
	if data == nil || data.JSONL == nil || data.JSONL.ConfigMapRef == nil {
		return nil, nil
	}
	var config corev1.ConfigMap
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: data.JSONL.ConfigMapRef.Name}, &config)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the configmap of a data set: %w", err)
	}
	files := Files{}
	for _, split := range data.Splits {
		if split.Source != "" {
			files[split.Source] = digest(&config, split.Source)
		}
	}
	return files, nil
}

// digest returns the digest of a ConfigMap's key; "" if it has none.
func digest(config *corev1.ConfigMap, key string) string {
	content, ok := config.BinaryData[key]
	if !ok {
		text, ok := config.Data[key]
		if !ok {
			return ""
		}
		content = []byte(text)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Digest returns the digest of a definition together with the files; without files it is the digest of the definition
// alone.
func (f Files) Digest(definition contract.Definition) (string, error) {
	own, err := contract.DefinitionDigest(definition)
	if err != nil || f == nil {
		return own, err
	}
	encoded, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("digesting the files of a data set: %w", err)
	}
	sum := sha256.Sum256(append([]byte(own), encoded...))
	return hex.EncodeToString(sum[:]), nil
}

// Match reports whether a probe read the files as they are now. Files that are nil match, since data from elsewhere is
// not compared.
func (f Files) Match(read *v1alpha1.DatasetStatus) bool {
	if f == nil {
		return true
	}
	if read == nil || len(read.Sources) != len(f) {
		return false
	}
	for _, source := range read.Sources {
		if f[source.Name] != source.SHA256 {
			return false
		}
	}
	return true
}

// MarkChanged marks a usable environment as not probed yet if its ConfigMap has changed since the probe read it, which
// the environment itself notices a little later. A failed probe has read nothing to compare with, and a run has to show
// its message.
func MarkChanged(ctx context.Context, reader client.Reader, env *v1alpha1.RewardEnvironment) error {
	if !meta.IsStatusConditionTrue(env.Status.Conditions, v1alpha1.ConditionReady) {
		return nil
	}
	files, err := Read(ctx, reader, env.Namespace, desired.Definition(env.Spec))
	if err == nil && !files.Match(env.Status.Dataset) {
		env.Status.ObservedGeneration = nil
	}
	return err
}
