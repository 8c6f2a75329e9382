// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceConfigMaps returns the ConfigMaps of a namespace that environments name, except the ConfigMaps in given
// and the ConfigMaps that --data gives as NAME=DIR. A missing ConfigMap is left out: the probe reports it.
func namespaceConfigMaps(ctx context.Context, reader client.Reader, namespace string,
	environments, given []*unstructured.Unstructured, data []string) ([]*unstructured.Unstructured, error) {
	names := map[string]bool{}
	for _, environment := range environments {
		addConfigMaps(names, environment.Object["spec"])
	}
	for _, object := range given {
		if object.GetKind() == "ConfigMap" {
			delete(names, object.GetName())
		}
	}
	for _, folder := range data {
		name, _, _ := strings.Cut(folder, "=")
		delete(names, name)
	}
	var found []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(names)) {
		config := corev1.ConfigMap{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &config)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %q: %w: give its files with --data %s=DIR", name, err, name)
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&config)
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %q: %w", name, err)
		}
		read := &unstructured.Unstructured{Object: object}
		read.SetAPIVersion("v1")
		read.SetKind("ConfigMap")
		found = append(found, read)
	}
	return found, nil
}

// addConfigMaps adds the names of the ConfigMaps to which a part of a spec refers.
func addConfigMaps(names map[string]bool, part any) {
	switch part := part.(type) {
	case map[string]any:
		for field, value := range part {
			reference, ok := value.(map[string]any)
			if name, named := reference["name"].(string); ok && named &&
				(field == "configMapRef" || field == "configMapKeyRef") {
				names[name] = true
			}
			addConfigMaps(names, value)
		}
	case []any:
		for _, value := range part {
			addConfigMaps(names, value)
		}
	}
}
