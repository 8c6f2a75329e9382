// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package ref has the references from the API's objects to Secrets, ConfigMaps and TinkerEndpoints.
package ref

// ConfigMap names a ConfigMap in the object's own namespace.
type ConfigMap struct {
	// name is the name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ConfigMapKey names one key of a ConfigMap in the object's own namespace, or in the operator's namespace if the object
// is a TinkerEndpoint.
type ConfigMapKey struct {
	// name is the name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// key is the key within the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// Secret names a Secret in the object's own namespace, or in the operator's namespace if the object is a
// TinkerEndpoint.
type Secret struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretKey names one key of a Secret in the object's own namespace, or in the operator's namespace if the object is a
// TinkerEndpoint.
type SecretKey struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// key is the key within the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// Endpoint names a TinkerEndpoint.
type Endpoint struct {
	// name is the name of the TinkerEndpoint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`
}
