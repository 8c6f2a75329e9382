// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// FunctionImage has the image of an environment's functions, and the place where its container runs.
type FunctionImage struct {
	// image has the interpreter, python3, and the packages that the functions import. Defaults to the chart's
	// images.python.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// requirements are packages that are installed in addition to the packages of the image, each with its exact version,
	// such as sympy==1.13.3. The probe finds wheels of these packages and their dependencies, and pins them by digest in
	// status.packages. Each pod installs the wheels before the container begins, with the image's pip. A pod whose image
	// has the packages starts sooner, and needs no index.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Requirements []Requirement `json:"requirements,omitempty"`
	// index is the package index of requirements. Defaults to the chart's packageIndex, or to pip's own default.
	// +optional
	Index *PackageIndex `json:"index,omitempty"`
	// placement selects where the container runs. Worker runs it beside each worker. Pods runs it in pods of its own,
	// which all workers of a run call. The chart's value environmentServers.shared lets the operator make such pods.
	// +kubebuilder:default=Worker
	// +optional
	Placement Placement `json:"placement,omitempty"`
	// isolation is the isolation without which programs that a policy wrote do not run.
	// +optional
	Isolation *Isolation `json:"isolation,omitempty"`
}

// Placement selects where functions run.
// +kubebuilder:validation:Enum=Worker;Pods
type Placement string

// The placements.
const (
	// PlacementWorker runs functions beside each worker.
	PlacementWorker Placement = "Worker"
	// PlacementPods runs functions in pods of their own.
	PlacementPods Placement = "Pods"
)

// PodNetwork limits the connections of the pods of placement Pods.
// +kubebuilder:validation:Enum=None;Open
type PodNetwork string

// The networks of the pods of placement Pods.
const (
	// PodNetworkNone permits no connections, by a NetworkPolicy.
	PodNetworkNone PodNetwork = "None"
	// PodNetworkOpen adds no policy: the cluster's other policies decide which connections are permitted.
	PodNetworkOpen PodNetwork = "Open"
)

// Requirement is a package with its exact version.
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\\\\[[A-Za-z0-9._,-]+\\\\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*$')",message="must be a package with its exact version, as in sympy==1.13.3 or httpx[http2]==0.28.1"
type Requirement string

// PackageIndex is an index of Python packages.
// +kubebuilder:validation:MinProperties=1
type PackageIndex struct {
	// url is the address of the index, in the form of pip's --index-url. The URL must not contain a password.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/@]+(/.*)?$')",message="must begin with http:// or https://, followed by a host, without a user name and a password: give these with secretRef"
	// +optional
	URL string `json:"url,omitempty"`
	// secretRef names a Secret whose keys username and password are the credentials for the index.
	// +optional
	SecretRef *ref.Secret `json:"secretRef,omitempty"`
	// caBundleConfigMapKeyRef is the ConfigMap key with the certificates, in PEM, of the authorities that are trusted for
	// the index instead of the image's authorities.
	// +optional
	CABundleConfigMapKeyRef *ref.ConfigMapKey `json:"caBundleConfigMapKeyRef,omitempty"`
}
