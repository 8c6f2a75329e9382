// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// TestPodsConnectAsTheSpecSays checks that files are mounted at the paths that the variables of package transport
// name.
func TestPodsConnectAsTheSpecSays(t *testing.T) {
	plain := testRun()
	run := testRun()
	run.Spec.Tinker.ProxyURL = "http://proxy:3128"
	run.Spec.Tinker.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "authorities", Key: "bundle.pem"}
	run.Spec.Tinker.ClientCertificateSecretRef = &ref.Secret{Name: "certificate"}
	for name, template := range map[string]corev1.PodTemplateSpec{
		"learner": learnerTemplate(run, 1, "link", Settings{}), "rollout": rolloutTemplate(run, 1, "link", Settings{}),
	} {
		env := map[string]string{}
		for _, v := range template.Spec.Containers[0].Env {
			env[v.Name] = v.Value
		}
		options := transport.FromEnvironment(func(name string) string { return env[name] })
		want := transport.Options{
			ProxyURL: "http://proxy:3128", CAFile: authorityDir + "/ca.crt",
			CertificateFile: certificateDir + "/tls.crt", KeyFile: certificateDir + "/tls.key",
		}
		if options != want {
			t.Errorf("%s: options are %+v, want %+v", name, options, want)
		}
		mounts := map[string]string{}
		for _, m := range template.Spec.Containers[0].VolumeMounts {
			mounts[m.Name] = m.MountPath
		}
		found := 0
		for _, v := range template.Spec.Volumes {
			switch {
			case v.ConfigMap != nil && v.ConfigMap.Name == "authorities" && v.ConfigMap.Items[0].Key == "bundle.pem" &&
				mounts[v.Name] == authorityDir,
				v.Secret != nil && v.Secret.SecretName == "certificate" && mounts[v.Name] == certificateDir:
				found++
			}
		}
		if found != 2 {
			t.Errorf("%s: %d of 2 volumes are mounted", name, found)
		}
	}
	if RolloutTemplateDigest(plain) == RolloutTemplateDigest(run) {
		t.Errorf("the digest of the workers does not change with the connection: got %v for both",
			RolloutTemplateDigest(plain))
	}
}
