// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// TestRewardsHaveDefaults reads rewards as users write them, and requires the form that workers read: every default,
// compact schemas and sorted lists.
func TestRewardsHaveDefaults(t *testing.T) {
	cases := map[string]struct{ given, want string }{
		"normalize": {"exactMatch: {part: Text, normalize: [Space, Case]}",
			"exactMatch: {part: Text, normalize: [Case, Space]}"},
		"exactMatch":        {"exactMatch: {}", "exactMatch: {part: LastInteger}"},
		"countdown":         {"countdown: {}", "countdown: {strict: true}"},
		"countdown of rLLM": {"countdown: {strict: false}", "countdown: {strict: false}"},
		"math":              {"math: {}", "math: {}"},
		"rubric": {"rubric: {judge: {tinker: {model: m}}}", `rubric: {scoring: PassRate, minCoverage: 1, judge: {
			tinker: {model: m}, sampling: {temperature: 0.7, maxTokens: 4096}, retries: 3, timeoutSeconds: 300}}`},
		"rubric of zeros": {`rubric: {scoring: Score, minCoverage: 0, judge: {tinker: {checkpoint: c}, sampling: {
			temperature: 0, maxTokens: 9}, retries: 0, timeoutSeconds: 5}}`, `rubric: {scoring: Score, minCoverage: 0,
			judge: {tinker: {checkpoint: c}, sampling: {temperature: 0, maxTokens: 9}, retries: 0, timeoutSeconds: 5}}`},
		"rubric of a sum": {`weighted: [{name: judged, weight: 1.0, rubric: {judge: {openAI: {baseURL: 'http://a', model: m,
			apiKeySecretKeyRef: {name: s, key: k}}}}}]`, `weighted: [{name: judged, weight: 1.0, rubric: {scoring: PassRate,
			minCoverage: 1, judge: {openAI: {baseURL: 'http://a', model: m, apiKeySecretKeyRef: {name: s, key: k}},
			sampling: {temperature: 0.7, maxTokens: 4096}, retries: 3, timeoutSeconds: 300}}}]`},
		"a metric alone": {"weighted: [{name: a, weight: 1, math: {}}, {name: b, weight: 0, math: {}}]",
			"weighted: [{name: a, weight: 1, math: {}}, {name: b, weight: 0, math: {}}]"},
		"python": {"python: {code: c}", "python: {code: c, processes: 2, concurrency: 64, timeoutSeconds: 60}"},
		"jsonSchema": {"jsonSchema: {schema: {type: object, properties: {b: {minimum: 1.50}, a: {}}}}",
			`jsonSchema: {schema: {properties: {a: {}, b: {minimum: 1.5}}, type: object}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			definition := rewarded(t, tc.given)
			var want v1alpha1.RewardEnvironmentSpec
			if err := yaml.UnmarshalStrict([]byte("reward: {"+tc.want+"}"), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Reward, definition.Reward); diff != "" {
				t.Errorf("the reward (-want +got):\n%s", diff)
			}
			if err := definition.Validate(); err != nil {
				t.Errorf("the definition is not valid: %v", err)
			}
		})
	}
}

// rewarded returns the definition of an environment whose reward is given in YAML, with its defaults.
func rewarded(t *testing.T, reward string) contract.Definition {
	t.Helper()
	env := &v1alpha1.RewardEnvironment{}
	text := "dataset: {arithmetic: {}}\nreward: {" + reward + "}"
	if err := yaml.UnmarshalStrict([]byte(text), &env.Spec); err != nil {
		t.Fatal(err)
	}
	admit.Default(env)
	return Definition(env.Spec)
}
