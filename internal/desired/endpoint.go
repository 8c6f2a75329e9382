// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// AuthorityKey is the key of the run file's ConfigMap with the certificate authority of a broker, in PEM. Only runs
// with tinker.endpointRef have it.
const AuthorityKey = "endpoint-ca.crt"

// BrokerPort is the port of the Service of a broker.
const BrokerPort = 8443

// BrokerHost returns the name of the Service of the broker of an endpoint.
func BrokerHost(name, operatorNamespace string) string {
	return fmt.Sprintf("%s.%s.svc", endpoint.ObjectName(name), operatorNamespace)
}

// BrokerHosts returns the host names of the broker of an endpoint. The certificate of the broker has all of them.
func BrokerHosts(name, operatorNamespace string) []string {
	host := BrokerHost(name, operatorNamespace)
	return []string{host, host + ".cluster.local", strings.TrimSuffix(host, ".svc"), endpoint.ObjectName(name)}
}

// BaseURL returns the address of the endpoint of a run that names none: the address of its TinkerEndpoint's broker, or
// the operator's default.
func (s Settings) BaseURL(run *v1alpha1.TrainingRun) string {
	if named := run.Spec.Tinker.EndpointRef; named != nil {
		return fmt.Sprintf("https://%s:%d", BrokerHost(named.Name, s.Namespace), BrokerPort)
	}
	return s.DefaultBaseURL
}

// EndpointSecretName returns the name of the Secret with the token of a run at its TinkerEndpoint. credentials is
// CredentialsName's: the token also derives from the manager key, and from the name of the endpoint.
func EndpointSecretName(run *v1alpha1.TrainingRun, credentials string) string {
	suffix := credentials[strings.LastIndexByte(credentials, '-')+1:]
	sum := sha256.Sum256([]byte(suffix + " " + run.Spec.Tinker.EndpointRef.Name))
	return prefix(run.Name, run.UID) + "-endpoint-" + hex.EncodeToString(sum[:4])
}

// EndpointSecret returns the Secret with the token of a run at its TinkerEndpoint. The pods of the run have the token
// in place of an API key. Its name is EndpointSecretName's.
func EndpointSecret(run *v1alpha1.TrainingRun, token, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: ownedByRun(run, name, RunLabels(run)),
		Immutable:  ptr.To(true),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{contract.TokenKey: []byte(token)},
	}
}

// keyOf returns the Secret key that the pods of a run have as their API key.
func keyOf(run *v1alpha1.TrainingRun, credentials string) ref.SecretKey {
	if run.Spec.Tinker.EndpointRef != nil {
		return ref.SecretKey{Name: EndpointSecretName(run, credentials), Key: contract.TokenKey}
	}
	return ptr.Deref(run.Spec.Tinker.APIKeySecretKeyRef, ref.SecretKey{})
}
