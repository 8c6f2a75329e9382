// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// keepArtifacts mounts the claim of the artifacts in the learner, or adds the keys of their store and a folder for its
// copy.
func (p *pod) keepArtifacts(artifacts *v1alpha1.Artifacts) {
	switch {
	case artifacts == nil:
	case artifacts.URL == "":
		p.mount(claimVolume(artifactsVolume, artifacts.ClaimName), ArtifactsDir)
	default:
		p.mount(emptyVolume(artifactsVolume, artifactsLimit), ArtifactsDir)
		if secret := artifacts.SecretRef; secret != nil {
			p.container.EnvFrom = append(p.container.EnvFrom, corev1.EnvFromSource{
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name}},
			})
		}
	}
}
