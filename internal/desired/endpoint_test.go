// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

// atEndpoint returns a run that names a TinkerEndpoint.
func atEndpoint(name string) *v1alpha1.TrainingRun {
	run := testRun()
	run.Spec.Tinker = v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: name}}
	return run
}

// TestPodsAtAnEndpointHaveItsToken checks that learner and workers of a run with endpointRef have the token of the run
// and the authority of the broker, and nothing of an API key.
func TestPodsAtAnEndpointHaveItsToken(t *testing.T) {
	run, settings := atEndpoint("prod"), Settings{Image: "i", Namespace: "operator"}
	const credentials = "a-12345-credentials-0badc0de"
	for role, template := range map[string]corev1.PodTemplateSpec{
		"learner": LearnerJob(run, 3, credentials, settings).Spec.Template,
		"workers": RolloutJob(run, 3, credentials, settings).Spec.Template,
	} {
		container := template.Spec.Containers[0]
		env := map[string]corev1.EnvVar{}
		for _, e := range container.Env {
			env[e.Name] = e
		}
		key := env["TINKER_API_KEY"].ValueFrom.SecretKeyRef
		if want := EndpointSecretName(run, credentials); key.Name != want || key.Key != "token" {
			t.Errorf("%s: the key is %q of %q, want token of %q", role, key.Key, key.Name, want)
		}
		i := slices.IndexFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == authorityVolume })
		if i < 0 || template.Spec.Volumes[i].ConfigMap.Name != RunFileName(run, 3) ||
			template.Spec.Volumes[i].ConfigMap.Items[0].Key != AuthorityKey {
			t.Errorf("%s: the volumes %v have no authority of the run file", role, template.Spec.Volumes)
		}
		if env[authorityVariable].Value == "" || env[proxyVariable].Value != "" {
			t.Errorf("%s: the environment is %v", role, container.Env)
		}
	}
}

// TestEndpointSecretDiffersByEndpointAndKey checks that a Secret, which cannot be changed, has another name for another
// token.
func TestEndpointSecretDiffersByEndpointAndKey(t *testing.T) {
	names := map[string]bool{}
	for _, endpoint := range []string{"a", "b"} {
		for _, credentials := range []string{"x-credentials-1", "x-credentials-2"} {
			names[EndpointSecretName(atEndpoint(endpoint), credentials)] = true
		}
	}
	if len(names) != 4 {
		t.Errorf("the names are %v, want 4", names)
	}
}

// TestBaseURLOfAnEndpoint checks the address of a run that names none.
func TestBaseURLOfAnEndpoint(t *testing.T) {
	settings := Settings{DefaultBaseURL: "https://hosted", Namespace: "operator"}
	if got := settings.BaseURL(testRun()); got != "https://hosted" {
		t.Errorf("without endpointRef: %q", got)
	}
	want := "https://tinker-endpoint-prod.operator.svc:8443"
	if got := settings.BaseURL(atEndpoint("prod")); got != want {
		t.Errorf("with endpointRef: %q, want %q", got, want)
	}
	if hosts := BrokerHosts("prod", "operator"); !slices.Contains(hosts, "tinker-endpoint-prod.operator.svc") {
		t.Errorf("the certificate has the names %v", hosts)
	}
}

// TestChangeOfTheEndpointDecidesWeights checks that a change from an API key of the run to an endpoint, from one
// endpoint to another, and back is noticed. The Job of a run without an endpoint notes no endpoint.
func TestChangeOfTheEndpointDecidesWeights(t *testing.T) {
	own := testRun()
	if strings.Contains(learnerSettings(own), fieldEndpointRef) {
		t.Errorf("the settings of a run without endpoint are %s", learnerSettings(own))
	}
	for name, tc := range map[string]struct {
		was, is *v1alpha1.TrainingRun
		changed bool
	}{
		"the same key":      {own, testRun(), false},
		"to an endpoint":    {own, atEndpoint("a"), true},
		"the same endpoint": {atEndpoint("a"), atEndpoint("a"), false},
		"another endpoint":  {atEndpoint("a"), atEndpoint("b"), true},
		"from an endpoint":  {atEndpoint("a"), own, true},
	} {
		changed, known := ChangedSettings(tc.is, map[string]string{v1alpha1.AnnotationSettings: learnerSettings(tc.was)})
		if !known || slices.Contains(changed, fieldEndpointRef) != tc.changed {
			t.Errorf("%s: changed are %v, known %v", name, changed, known)
		}
		if same := RolloutTemplateDigest(tc.was) == RolloutTemplateDigest(tc.is); same == tc.changed {
			t.Errorf("%s: the template of workers is the same: %v", name, same)
		}
	}
}
