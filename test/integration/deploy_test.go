// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// command runs a program at the root of the repository and returns its output.
func command(name string, arguments ...string) []byte {
	GinkgoHelper()
	run := exec.CommandContext(context.Background(), name, arguments...)
	run.Dir = filepath.Join("..", "..")
	// Without CGO_ENABLED the tools are those that the other targets of the Makefile have built.
	run.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CGO_ENABLED=") })
	run.Env = append(run.Env, "KUBECONFIG="+kubeconfig)
	var problem bytes.Buffer
	run.Stderr = &problem
	output, err := run.Output()
	Expect(err).NotTo(HaveOccurred(), problem.String())
	return output
}

// installation has the parts that the chart and the kustomization have in common.
type installation struct {
	pod   corev1.PodSpec
	rules map[string][]rbacv1.PolicyRule
}

// readInstallation finds the manager's pod and all rules in rendered manifests; names has the name of each role.
func readInstallation(manifests []byte, names map[string]string) installation {
	GinkgoHelper()
	found := installation{rules: map[string][]rbacv1.PolicyRule{}}
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Rules    []rbacv1.PolicyRule
		}
		Expect(yaml.Unmarshal(document, &object)).To(Succeed())
		switch object.Kind {
		case "Deployment":
			var deployment appsv1.Deployment
			Expect(yaml.UnmarshalStrict(document, &deployment)).To(Succeed())
			found.pod = deployment.Spec.Template.Spec
			found.pod.ServiceAccountName = ""
		case "Role", "ClusterRole":
			Expect(names).To(HaveKey(object.Metadata.Name))
			found.rules[names[object.Metadata.Name]] = object.Rules
		}
	}
	return found
}

// simulator returns the pod of tinkersim as the chart makes it with further arguments of helm.
func simulator(arguments ...string) corev1.PodSpec {
	GinkgoHelper()
	arguments = append([]string{"tool", "-modfile=hack/tools/go.mod", "helm", "template", "demo", "charts/tinker-operator",
		"--show-only", "templates/tinkersim.yaml"}, arguments...)
	for document := range bytes.SplitSeq(command("go", arguments...), []byte("\n---\n")) {
		var deployment appsv1.Deployment
		if bytes.Contains(document, []byte("kind: Deployment")) {
			Expect(yaml.UnmarshalStrict(document, &deployment)).To(Succeed())
			return deployment.Spec.Template.Spec
		}
	}
	Fail("the chart has no tinkersim")
	return corev1.PodSpec{}
}

var _ = Describe("tinkersim of the chart", func() {
	It("keeps its key out of the list of processes", func() {
		container := simulator("--set", "tinkersim.enabled=true,tinkersim.apiKeySecret=mine").Containers[0]
		Expect(strings.Join(container.Args, " ")).NotTo(ContainSubstring("api-key"))
		Expect(container.Env).To(HaveLen(1))
		Expect(container.Env[0].Name).To(Equal("TINKERSIM_API_KEY")) // keyVariable of cmd/tinkersim
		Expect(container.Env[0].ValueFrom.SecretKeyRef.Name).To(Equal("mine"))
	})

	It("is restarted when it no longer answers", func() {
		container := simulator("--set", "tinkersim.enabled=true").Containers[0]
		Expect(container.LivenessProbe.HTTPGet).To(Equal(container.ReadinessProbe.HTTPGet))
	})

	It("has its checkpoints on a volume in the demo", func() {
		volume := simulator("--values", "hack/demo/values.yaml").Volumes[0]
		Expect(volume.Name).To(Equal("data"))
		Expect(volume.PersistentVolumeClaim).NotTo(BeNil())
	})
})

var _ = Describe("config/default", func() {
	It("has the chart's manager and rules", func() {
		chart := readInstallation(command("go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
			"charts/tinker-operator", "--set", "image.repository=tinker-operator,image.tag=dev,crds.install=false"),
			map[string]string{
				"tinker-operator-manager": "manager", "tinker-operator-leader": "leader",
				"tinker-operator-metrics-auth": "metrics-auth", "tinker-operator-metrics-reader": "metrics-reader",
				"tinker-operator-admin": "admin", "tinker-operator-edit": "edit", "tinker-operator-view": "view",
				"tinker-operator-endpoints": "endpoints", "tinker-operator-endpoints-view": "endpoints-view",
				"tinker-operator-default-brokers": "brokers",
			})
		kustomization := readInstallation(command(filepath.Join(binaries, "kubectl"), "kustomize", "config/default"),
			map[string]string{
				"tinker-operator-manager-role": "manager", "tinker-operator-leader-election-role": "leader",
				"tinker-operator-metrics-auth-role": "metrics-auth", "tinker-operator-metrics-reader": "metrics-reader",
				"tinker-operator-admin": "admin", "tinker-operator-edit": "edit", "tinker-operator-view": "view",
				"tinker-operator-endpoints-role": "endpoints", "tinker-operator-endpoints-view": "endpoints-view",
				"tinker-operator-brokers-role": "brokers",
			})
		Expect(kustomization.pod).To(Equal(chart.pod))
		Expect(kustomization.rules).To(HaveLen(10))
		Expect(kustomization.rules).To(Equal(chart.rules))
	})

	It("passes the defaults of pods to the manager, which reads them", func() {
		chart := readInstallation(command("go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
			"charts/tinker-operator",
			"--show-only", "templates/manager.yaml", "--set",
			"pods.nodeSelector.pool=runs,pods.resources.limits.cpu=2,pods.tolerations[0].key=runs"), nil)
		const flag = "--pod-defaults="
		i := slices.IndexFunc(chart.pod.Containers[0].Args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
		Expect(i).To(BeNumerically(">=", 0))
		defaults, err := desired.DecodePodDefaults(strings.TrimPrefix(chart.pod.Containers[0].Args[i], flag))
		Expect(err).NotTo(HaveOccurred())
		Expect(defaults.NodeSelector).To(Equal(map[string]string{"pool": "runs"}))
		Expect(defaults.Resources.Limits.Cpu().String()).To(Equal("2"))
		Expect(defaults.Tolerations[0].Key).To(Equal("runs"))
	})

	It("has no right to read Secrets, and the chart has none in any of its shapes", func() {
		for _, set := range []string{"watchNamespaces={a,b}", "environmentServers.shared=true",
			"environmentServers.shared=true,environmentServers.warmPools=true",
			"metrics.enabled=true,tinkersim.enabled=true", "aggregateRoles=true",
			"watchNamespaces={a},endpoints.names={prod}"} {
			manifests := command("go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
				"charts/tinker-operator", "--set", set)
			roles := 0
			for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
				var role rbacv1.ClusterRole // A Role has the same rules.
				Expect(yaml.Unmarshal(document, &role)).To(Succeed())
				if role.Kind != "Role" && role.Kind != "ClusterRole" {
					continue
				}
				roles++
				for _, rule := range role.Rules {
					if slices.Contains(rule.APIGroups, "") || slices.Contains(rule.APIGroups, "*") {
						Expect(rule.Resources).NotTo(ContainElement("*"), "%s with %s", role.Name, set)
					}
					if slices.Contains(rule.Resources, "secrets") {
						Expect(rule.Verbs).To(Equal([]string{"create"}), "%s with %s", role.Name, set)
					}
				}
			}
			Expect(roles).To(BeNumerically(">", 2), "with %s", set)
		}
	})

	It("is installed by make deploy, which makes the manager key once", func() {
		ctx := context.Background()
		deploy := func() {
			command("make", "deploy", "IMAGE=registry/operator:1", "KUBECTL="+filepath.Join(binaries, "kubectl"))
		}
		deploy()
		var deployment appsv1.Deployment
		name := client.ObjectKey{Namespace: "tinker-operator-system", Name: "tinker-operator-manager"}
		Expect(kube.Get(ctx, name, &deployment)).To(Succeed())
		container := deployment.Spec.Template.Spec.Containers[0]
		Expect(container.Image).To(Equal("registry/operator:1"))
		Expect(container.Args).To(ContainElement("--image=registry/operator:1"))

		var key, later corev1.Secret
		name.Name = deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName
		Expect(kube.Get(ctx, name, &key)).To(Succeed())
		Expect(key.Data["manager-key"]).To(HaveLen(32))
		deploy()
		Expect(kube.Get(ctx, name, &later)).To(Succeed())
		Expect(later.Data).To(Equal(key.Data))
	})
})
