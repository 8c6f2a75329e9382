// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package admit sets the defaults of the embedded CRDs in objects of tests, as the API server does.
package admit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

// Default sets the defaults of runs and environments. It panics for objects of other kinds.
func Default(objects ...runtime.Object) {
	for _, object := range objects {
		kind := manifest.KindEnvironment
		if _, ok := object.(*v1alpha1.TrainingRun); ok {
			kind = manifest.KindRun
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err == nil {
			err = manifest.SetDefaults(kind, content)
		}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
		}
		if err != nil {
			panic(fmt.Sprintf("setting the defaults of a %T: %v", object, err))
		}
	}
}
