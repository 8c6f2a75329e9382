// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package warmpool connects the manager to the warm pools of kubernetes-sigs/agent-sandbox, from which programs of runs
// claim their pods. It has types of its own for the objects that it reads, and the objects that it writes are
// unstructured, so that the manager needs no package of agent-sandbox.
package warmpool

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// The kinds beside desired.ClaimKind.
const (
	poolKind     = "SandboxWarmPool"
	templateKind = "SandboxTemplate"
)

// conditionReady is the condition of a claim whose sandbox has a pod that is ready.
const conditionReady = "Ready"

// pool has the fields of a SandboxWarmPool that are read.
type pool struct {
	Spec struct {
		SandboxTemplateRef struct {
			Name string `json:"name"`
		} `json:"sandboxTemplateRef"`
	} `json:"spec"`
}

// template has the fields of a SandboxTemplate that are read.
type template struct {
	Spec struct {
		PodTemplate struct {
			Spec corev1.PodSpec `json:"spec"`
		} `json:"podTemplate"`
	} `json:"spec"`
}

// Claim has the fields of a SandboxClaim that are read.
type Claim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		WarmPoolRef struct {
			Name string `json:"name"`
		} `json:"warmPoolRef"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// parse reads an object into one of the types above.
func parse[T any](object *unstructured.Unstructured, into *T) error {
	text, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// object returns an empty object of a kind.
func object(kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(desired.PoolsVersion.WithKind(kind))
	return made
}
