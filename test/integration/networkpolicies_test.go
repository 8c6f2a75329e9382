// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// peer is a pod as NetworkPolicies see it, with the ports that it listens on.
type peer struct {
	namespace string
	labels    map[string]string
	ports     []int32
}

// network is what a cluster that enforces NetworkPolicies knows.
type network struct {
	policies []networkingv1.NetworkPolicy
	peers    map[string]peer
}

// permits reports whether one pod may connect to a port of another: a policy of each permits it, or it has no policy.
func (n network) permits(from, to string, port int32) bool {
	GinkgoHelper()
	ingress, egress := true, true
	for i, side := range []string{to, from} {
		selected, permitted := false, false
		for _, policy := range n.policies {
			if policy.Namespace != n.peers[side].namespace || !selects(policy.Spec.PodSelector, n.peers[side].labels) {
				continue
			}
			selected = true
			if i == 0 {
				for _, rule := range policy.Spec.Ingress {
					permitted = permitted || hasPort(rule.Ports, port) && n.isPeer(rule.From, from, policy.Namespace)
				}
				continue
			}
			for _, rule := range policy.Spec.Egress {
				permitted = permitted || hasPort(rule.Ports, port) && n.isPeer(rule.To, to, policy.Namespace)
			}
		}
		if i == 0 {
			ingress = !selected || permitted
		} else {
			egress = !selected || permitted
		}
	}
	return ingress && egress
}

func hasPort(ports []networkingv1.NetworkPolicyPort, port int32) bool {
	for _, p := range ports {
		if p.Port.IntVal == port && string(*p.Protocol) == "TCP" {
			return true
		}
	}
	return len(ports) == 0
}

// isPeer reports whether a pod is one of the peers of a rule of a policy in a namespace. No rule of the chart has a
// block of addresses unless a value gives it.
func (n network) isPeer(peers []networkingv1.NetworkPolicyPeer, name, namespace string) bool {
	GinkgoHelper()
	pod := n.peers[name]
	for _, p := range peers {
		Expect(p.IPBlock).To(BeNil())
		within := pod.namespace == namespace
		if p.NamespaceSelector != nil {
			within = selects(*p.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": pod.namespace})
		}
		if within && (p.PodSelector == nil || selects(*p.PodSelector, pod.labels)) {
			return true
		}
	}
	return len(peers) == 0
}

func selects(selector metav1.LabelSelector, of map[string]string) bool {
	GinkgoHelper()
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	Expect(err).NotTo(HaveOccurred())
	return parsed.Matches(labels.Set(of))
}

// renderedNetwork reads the policies and the pods of the chart, and adds the pods that the manager makes.
func renderedNetwork(namespace string, arguments ...string) network {
	GinkgoHelper()
	found := network{peers: map[string]peer{}}
	manifests := command("go", append([]string{"tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
		"charts/tinker-operator", "--namespace", "default", "--set", "tinkersim.enabled=true,networkPolicies.enabled=true",
		"--set", "networkPolicies.namespaces={" + namespace + "}"}, arguments...)...)
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var policy networkingv1.NetworkPolicy
		var deployment appsv1.Deployment
		switch {
		case bytes.Contains(document, []byte("kind: NetworkPolicy")):
			Expect(yaml.UnmarshalStrict(document, &policy)).To(Succeed())
			found.policies = append(found.policies, policy)
		case bytes.Contains(document, []byte("kind: Deployment")):
			Expect(yaml.UnmarshalStrict(document, &deployment)).To(Succeed())
			made := peer{namespace: deployment.Namespace, labels: deployment.Spec.Template.Labels}
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				made.ports = append(made.ports, port.ContainerPort)
			}
			found.peers[made.labels["app.kubernetes.io/component"]] = made
		}
	}
	run, environment := &v1alpha1.TrainingRun{}, &v1alpha1.RewardEnvironment{}
	run.Namespace, run.Name, run.UID = namespace, "run", "0123456789"
	environment.Namespace, environment.Name, environment.UID = namespace, "environment", "0123456789"
	settings := desired.Settings{Image: "image"}
	for name, pod := range map[string]map[string]string{
		"learner": desired.LearnerLabels(run, 1), "worker": desired.RolloutLabels(run), "server": desired.SharedLabels(run),
		"probe":  desired.ProbeJob(environment, "0123456789", 1, settings).Spec.Template.Labels,
		"reader": desired.ReaderPod(run, "reader", "", nil, settings).Labels,
	} {
		ports := map[string][]int32{"learner": {desired.ExchangePort, desired.HeartbeatPort}, "worker": {8081}, "server": {8080}}
		found.peers[name] = peer{namespace: namespace, labels: pod, ports: append(ports[name], 22)}
	}
	found.peers["broker"] = peer{namespace: found.peers["manager"].namespace, labels: desired.BrokerLabels("prod"),
		ports: []int32{desired.BrokerPort, 8081, 22}}
	found.peers["stranger"] = peer{namespace: namespace, labels: map[string]string{"app": "other"}, ports: []int32{80}}
	found.peers["prometheus"] = peer{namespace: "monitoring", labels: map[string]string{"app": "prometheus"}}
	return found
}

var _ = Describe("The NetworkPolicies of the chart", func() {
	It("permit the connections of docs/in-your-cluster.md between pods, and no others", func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "network-"}}
		Expect(kube.Create(context.Background(), namespace)).To(Succeed())
		rendered := renderedNetwork(namespace.Name)
		Expect(rendered.policies).To(HaveLen(8))
		for _, policy := range rendered.policies {
			Expect(kube.Create(context.Background(), &policy, client.DryRunAll)).To(Succeed(), policy.Name)
		}
		expected := map[string]bool{
			"manager to learner:7444": true, "worker to learner:7443": true, "worker to server:8080": true,
			"learner to tinkersim:8000": true, "worker to tinkersim:8000": true,
			"learner to broker:8443": true, "worker to broker:8443": true, "broker to tinkersim:8000": true,
			"prometheus to broker:8081": true, "stranger to broker:8081": true,
			"worker to server:22": true, // the environment chooses the port of its server
			// Who may scrape is a value; without it, whoever has no policy against it.
			"prometheus to manager:8443": true, "stranger to manager:8443": true,
			// The chart has no policy of a stranger.
			"stranger to prometheus": true,
		}
		for from := range rendered.peers {
			for to, pod := range rendered.peers {
				for _, port := range pod.ports {
					if from == to || to == "stranger" && rendered.peers[from].namespace == "monitoring" {
						continue
					}
					flow := fmt.Sprintf("%s to %s:%d", from, to, port)
					Expect(rendered.permits(from, to, port)).To(Equal(expected[flow]), flow)
				}
			}
		}
	})

	It("let those scrape the manager that a value names", func() {
		rendered := renderedNetwork("default", "--set",
			"networkPolicies.scrapers[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=monitoring")
		Expect(rendered.permits("prometheus", "manager", 8443)).To(BeTrue())
		Expect(rendered.permits("stranger", "manager", 8443)).To(BeFalse())
	})
})
