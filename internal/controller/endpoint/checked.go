// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// ServerConnection digests the settings that decide the result of a broker's check, besides the model and the version
// of the client. Another value of the annotation check-again also changes it.
func ServerConnection(of *v1alpha1.TinkerEndpoint) string {
	spec := of.Spec
	decisive := struct {
		BaseURL, ProxyURL, ProjectID, Again string
		Key                                 ref.SecretKey
		Authorities                         *ref.ConfigMapKey
		Certificate                         *ref.Secret
	}{spec.BaseURL, spec.ProxyURL, spec.ProjectID, of.Annotations[v1alpha1.AnnotationCheckAgain],
		spec.APIKeySecretKeyRef, spec.CABundleConfigMapKeyRef, spec.ClientCertificateSecretRef}
	data, err := json.Marshal(decisive)
	if err != nil {
		panic("endpoint: digesting a connection: " + err.Error()) // These are plain API types, which were decoded from JSON.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// CheckOf returns the findings of an endpoint's broker for the model of a run, at the present connection; nil if the
// broker has not checked within the last day.
func CheckOf(of *v1alpha1.TinkerEndpoint, model v1alpha1.Model, now time.Time) *v1alpha1.EndpointCapabilities {
	wanted, connection := slices.Sorted(slices.Values(model.TrainModules)), ServerConnection(of)
	for i := range of.Status.Capabilities {
		found := &of.Status.Capabilities[i]
		if found.Model == model.Name && slices.Equal(slices.Sorted(slices.Values(found.TrainModules)), wanted) &&
			found.Connection == connection && found.CheckedAt != nil && now.Sub(found.CheckedAt.Time) < SharedFor {
			return found
		}
	}
	return nil
}

// ShareCheck returns the findings of a broker's check on which a run may rely; nil if there are none. baseURL is the
// address of the run's endpoint. The platform runs the broker, so that the run takes over all findings. At a
// TinkerEndpoint, no run takes over the findings of another run's learner, which may have a tenant's image.
func ShareCheck(from *v1alpha1.EndpointCapabilities, endpoint, baseURL string) *contract.Capabilities {
	if from == nil || len(from.Supported)+len(from.Ignored)+len(from.Unsupported) == 0 {
		return nil
	}
	return &contract.Capabilities{
		BaseURL: baseURL, Model: from.Model, Supported: from.Supported, Ignored: from.Ignored,
		Unsupported: from.Unsupported, ClientVersion: from.ClientVersion, Connection: from.Connection,
		SharedFrom: &contract.SharedCheck{Name: endpoint, CheckedAt: from.CheckedAt.UTC().Format(time.RFC3339)},
	}
}
