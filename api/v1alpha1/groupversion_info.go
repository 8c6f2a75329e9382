// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API: TrainingRun, RewardEnvironment and TinkerEndpoint, with their conditions,
// reasons and labels beside the types. It does not depend on how a run is executed.
// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// SchemeGroupVersion is the group and version of this package.
	SchemeGroupVersion = schema.GroupVersion{Group: "rl.tinker-operator.dev", Version: "v1alpha1"}

	builder = runtime.NewSchemeBuilder(addTypes)

	// AddToScheme adds the kinds to a scheme.
	AddToScheme = builder.AddToScheme
)

func addTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&TrainingRun{}, &TrainingRunList{},
		&RewardEnvironment{}, &RewardEnvironmentList{},
		&TinkerEndpoint{}, &TinkerEndpointList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
