// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package configkey reads keys of ConfigMaps: code of functions and chat templates. ConfigMaps are read, not watched: a
// watch would need the right to list all of them, and memory for their contents.
package configkey

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Reader returns the function that reads keys of a namespace.
func Reader(ctx context.Context, from client.Reader, namespace string) desired.ReadKey {
	return func(key ref.ConfigMapKey) (text, missing string, err error) {
		var config corev1.ConfigMap
		err = from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, &config)
		if apierrors.IsNotFound(err) {
			return "", fmt.Sprintf("ConfigMap %q does not exist in this namespace", key.Name), nil
		}
		if err != nil {
			return "", "", fmt.Errorf("reading configmap %s: %w", key.Name, err)
		}
		if text, ok := config.Data[key.Key]; ok {
			return text, "", nil
		}
		if data, ok := config.BinaryData[key.Key]; ok {
			return string(data), "", nil
		}
		return "", fmt.Sprintf("ConfigMap %q has no key %q", key.Name, key.Key), nil
	}
}
