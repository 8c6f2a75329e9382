// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Folders and volumes with which the learner and the workers connect to the endpoint.
const (
	authorityDir   = "/etc/tinker-operator/endpoint-ca"
	certificateDir = "/etc/tinker-operator/endpoint-certificate"

	authorityVolume   = "tinker-operator-endpoint-ca"
	certificateVolume = "tinker-operator-endpoint-certificate"
)

// The variables of package transport, which the manager does not link.
const (
	proxyVariable       = "TINKER_PROXY_URL"
	authorityVariable   = "TINKER_CA_FILE"
	certificateVariable = "TINKER_CLIENT_CERTIFICATE_FILE"
	keyVariable         = "TINKER_CLIENT_KEY_FILE"
)

// connect adds the proxy, the authorities and the client certificate of the endpoint to a pod. For a TinkerEndpoint, it
// adds only the authority of the broker, from the ConfigMap of the attempt's run file.
func (p *pod) connect(run *v1alpha1.TrainingRun, attempt int32) {
	set := func(name, value string) {
		p.container.Env = append(p.container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	endpoint := run.Spec.Tinker
	if endpoint.EndpointRef != nil {
		volume := configVolume(authorityVolume, RunFileName(run, attempt))
		volume.ConfigMap.Items = []corev1.KeyToPath{{Key: AuthorityKey, Path: "ca.crt"}}
		p.mount(volume, authorityDir)
		set(authorityVariable, authorityDir+"/ca.crt")
		return
	}
	if endpoint.ProxyURL != "" {
		set(proxyVariable, endpoint.ProxyURL)
	}
	if ref := endpoint.CABundleConfigMapKeyRef; ref != nil {
		volume := configVolume(authorityVolume, ref.Name)
		volume.ConfigMap.Items = []corev1.KeyToPath{{Key: ref.Key, Path: "ca.crt"}}
		p.mount(volume, authorityDir)
		set(authorityVariable, authorityDir+"/ca.crt")
	}
	if ref := endpoint.ClientCertificateSecretRef; ref != nil {
		p.mount(secretVolume(certificateVolume, ref.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey), certificateDir)
		set(certificateVariable, certificateDir+"/"+corev1.TLSCertKey)
		set(keyVariable, certificateDir+"/"+corev1.TLSPrivateKeyKey)
	}
}

// connection has these settings in the form in which digests of templates include them; nil if the spec has none.
type connection struct {
	ProxyURL    string            `json:",omitempty"`
	Authorities *ref.ConfigMapKey `json:",omitempty"`
	Certificate *ref.Secret       `json:",omitempty"`
}

func connectionOf(endpoint v1alpha1.Tinker) *connection {
	c := connection{endpoint.ProxyURL, endpoint.CABundleConfigMapKeyRef, endpoint.ClientCertificateSecretRef}
	if c == (connection{}) {
		return nil
	}
	return &c
}
