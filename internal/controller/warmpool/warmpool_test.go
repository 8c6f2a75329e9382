// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// shipped returns the objects of the warm pool in the repository.
func shipped(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	manifests, err := os.ReadFile("../../../hack/agent-sandbox/pool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		made := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, made); err != nil {
			t.Fatal(err)
		}
		made.SetNamespace("default")
		objects = append(objects, made)
	}
	return objects
}

// TestUnfit changes the template of the warm pool in the repository, which is fit, and checks the reported faults.
func TestUnfit(t *testing.T) {
	runner := func(s *corev1.PodSpec) *corev1.Container { return &s.Containers[0] }
	for name, tc := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
	}{
		"as it is": {func(*corev1.PodSpec) {}, ""},
		"another Secret": {func(s *corev1.PodSpec) { runner(s).Env[0].ValueFrom.SecretKeyRef.Name = "other" },
			"no container has RUNNER_TLS_CERTIFICATE from the Secret \"python-runner\""},
		"no key":                 {func(s *corev1.PodSpec) { runner(s).Env = runner(s).Env[:1] }, "RUNNER_TLS_KEY"},
		"no port":                {func(s *corev1.PodSpec) { runner(s).Ports = nil }, "no port 7445"},
		"no file of the token":   {func(s *corev1.PodSpec) { runner(s).Args = runner(s).Args[:2] }, "--token-file"},
		"no downward API":        {func(s *corev1.PodSpec) { s.Volumes = s.Volumes[:2] }, "program-token"},
		"a token of the cluster": {func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = ptr.To(true) }, "automount"},
		"shared processes":       {func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(true) }, "shareProcess"},
	} {
		var of template
		if err := parse(shipped(t)[0], &of); err != nil {
			t.Fatal(err)
		}
		spec := of.Spec.PodTemplate.Spec
		tc.change(&spec)
		if got := unfit(spec, "python"); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: unfit = %q, want %q", name, got, tc.want)
		}
	}
}

// inPool is an environment whose programs have pods of a pool.
func inPool(pool string) *v1alpha1.RewardEnvironment {
	env := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}
	env.Spec.Execution = &v1alpha1.Execution{FunctionImage: environment.FunctionImage{
		Placement: environment.PlacementPods}, Pods: &v1alpha1.ExecutionPods{Replicas: 1,
		WarmPoolRef: &v1alpha1.WarmPoolRef{Name: pool}}}
	return env
}

// TestFill fills an environment from the template of its pool, and checks the reasons why it cannot.
func TestFill(t *testing.T) {
	builder := fake.NewClientBuilder()
	for _, o := range shipped(t) {
		builder = builder.WithObjects(o)
	}
	orphan := object(poolKind)
	orphan.SetNamespace("default")
	orphan.SetName("orphan")
	orphan.Object["spec"] = map[string]any{"sandboxTemplateRef": map[string]any{"name": "absent"}}
	kube := builder.WithObjects(orphan).Build()
	link := func(is bool) *Link { return &Link{now: time.Now, asked: time.Now(), served: is} }
	for name, tc := range map[string]struct {
		link *Link
		pool string
		want problem.Code
		says string
	}{
		"a pool with the runner":  {link(true), "python", "", ""},
		"no pool":                 {link(true), "absent", problem.WarmPoolNotFound, `SandboxWarmPool "absent"`},
		"a pool without template": {link(true), "orphan", problem.WarmPoolNotFound, `SandboxTemplate "absent"`},
		"no agent-sandbox":        {link(false), "python", problem.WarmPoolsMissing, `SandboxWarmPool "python"`},
		"a manager without":       {nil, "python", problem.WarmPoolsDisabled, `SandboxWarmPool "python"`},
	} {
		env := inPool(tc.pool)
		got, err := tc.link.Fill(context.Background(), kube, env)
		if err != nil {
			t.Fatal(name, err)
		}
		if got == nil {
			got = &problem.Problem{}
		}
		if got.Code != tc.want || !strings.Contains(got.Evidence, tc.says) {
			t.Errorf("%s: Fill = %+v, want %q and %q", name, got, tc.want, tc.says)
		}
		if e := env.Spec.Execution; tc.want == "" && (e.Image != "PYTHON_IMAGE" || len(e.Env) != 0 ||
			e.Resources.Limits.Memory().String() != "1Gi") {
			t.Errorf("%s: the environment has image %q, variables %v, limits %v", name, e.Image, e.Env, e.Resources.Limits)
		}
	}
	env := &v1alpha1.RewardEnvironment{}
	if got, err := (*Link)(nil).Fill(context.Background(), kube, env); got != nil || err != nil {
		t.Errorf("an environment without a pool: Fill = %v, %v, want nothing", got, err)
	}
}

// TestLacking checks the message about a program's claims.
func TestLacking(t *testing.T) {
	program := desired.PoolProgram{ID: "0123456789abcdef", Pool: "python", Replicas: 2}
	claim := func(name, id string, conditions ...metav1.Condition) Claim {
		made := Claim{}
		made.Name, made.Labels = name, map[string]string{v1alpha1.LabelProgram: id}
		made.Status.Conditions = conditions
		return made
	}
	ready := metav1.Condition{Type: conditionReady, Status: metav1.ConditionTrue}
	missing := metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: "WarmPoolNotFound",
		Message: `SandboxWarmPool "python" not found`}
	for name, tc := range map[string]struct {
		claims []Claim
		want   string // "" for nothing
	}{
		"no claim":                 {nil, "there is no claim yet"},
		"one that is not answered": {[]Claim{claim("a", program.ID)}, "has not answered"},
		"one that is not ready": {[]Claim{claim("a", program.ID, missing)},
			`SandboxClaim "a": WarmPoolNotFound: SandboxWarmPool "python" not found`},
		"one of two":              {[]Claim{claim("a", program.ID, missing), claim("b", program.ID, ready)}, ""},
		"that of another program": {[]Claim{claim("a", "fedcba9876543210", ready)}, "there is no claim yet"},
	} {
		got := lacking(tc.claims, program)
		if (got == nil) != (tc.want == "") || got != nil && (got.Code != problem.ClaimsNotReady ||
			!strings.Contains(got.Evidence, tc.want)) {
			t.Errorf("%s: lacking = %+v, want %q", name, got, tc.want)
		}
	}
}
