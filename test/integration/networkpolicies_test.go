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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/test/networkpolicy"
)

// peer is a pod with the ports that it listens on.
type peer struct {
	networkpolicy.Pod
	ports []int32
}

// network has the NetworkPolicies and the pods of a cluster that enforces them.
type network struct {
	policies networkpolicy.Policies
	peers    map[string]peer
}

// permits reports whether one pod may connect to a port of another.
func (n network) permits(from, to string, port int32) bool {
	return n.policies.Permits(networkpolicy.Flow{From: n.peers[from].Pod, To: n.peers[to].Pod, Port: port})
}

// renderedNetwork reads the policies and the pods of the chart, and adds the pods that the manager makes.
func renderedNetwork(namespace string, arguments ...string) network {
	GinkgoHelper()
	found := network{peers: map[string]peer{}}
	manifests := command("go", append([]string{"tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
		"charts/tinker-operator", "--namespace", "default", "--set", "tinkersim.enabled=true,networkPolicies.enabled=true",
		"--set", "networkPolicies.namespaces={" + namespace + "}"}, arguments...)...)
	var err error
	found.policies, err = networkpolicy.Read(manifests)
	Expect(err).NotTo(HaveOccurred())
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("kind: Deployment")) {
			continue
		}
		var deployment appsv1.Deployment
		Expect(yaml.UnmarshalStrict(document, &deployment)).To(Succeed())
		made := peerOf(deployment.Namespace, deployment.Spec.Template.Labels)
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			made.ports = append(made.ports, port.ContainerPort)
		}
		found.peers[made.Labels["app.kubernetes.io/component"]] = made
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
		ports := map[string][]int32{"learner": {desired.ExchangePort, desired.HeartbeatPort},
			"worker": {8081}, "server": {8080}}
		found.peers[name] = peerOf(namespace, pod, append(ports[name], 22)...)
	}
	program := programOf(run, settings)
	found.policies = append(found.policies, *desired.ProgramPolicy(run, program))
	found.peers["program"] = peerOf(namespace, program.Spec.Template.Labels, contract.ProgramPort, 22)
	found.peers["broker"] = peerOf(found.peers["manager"].Namespace, desired.BrokerLabels("prod"),
		desired.BrokerPort, 8081, 22)
	found.peers["stranger"] = peerOf(namespace, map[string]string{"app": "other"}, 80)
	found.peers["prometheus"] = peerOf("monitoring", map[string]string{"app": "prometheus"})
	return found
}

func peerOf(namespace string, labels map[string]string, ports ...int32) peer {
	return peer{Pod: networkpolicy.Pod{Namespace: namespace, Labels: labels}, ports: ports}
}

// programOf is the Deployment of a program of a run that has pods of its own.
func programOf(run *v1alpha1.TrainingRun, settings desired.Settings) *appsv1.Deployment {
	GinkgoHelper()
	run.Spec.Rollouts.Workers = new(int32(1))
	definition := contract.Definition{
		Reward: &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
			Source: environment.Source{Code: "x"}, Processes: 1, Concurrency: 1}}},
		Execution: &contract.Execution{FunctionImage: environment.FunctionImage{Placement: environment.PlacementPods}},
	}
	made, err := desired.ProgramPods(run, desired.Pins{"own": {Definition: definition}}.Servers(), "s", settings)
	Expect(err).NotTo(HaveOccurred())
	Expect(made).To(HaveLen(1))
	return made[0]
}

var _ = Describe("The NetworkPolicies of the chart", func() {
	It("permit the connections of docs/in-your-cluster.md between pods, and no others", func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "network-"}}
		Expect(kube.Create(context.Background(), namespace)).To(Succeed())
		rendered := renderedNetwork(namespace.Name)
		Expect(rendered.policies).To(HaveLen(10))
		for _, policy := range rendered.policies {
			Expect(kube.Create(context.Background(), &policy, client.DryRunAll)).To(Succeed(), policy.Name)
		}
		expected := map[string]bool{
			"manager to learner:7444": true, "worker to learner:7443": true, "worker to server:8080": true,
			"worker to program:7445":    true,
			"learner to tinkersim:8000": true, "worker to tinkersim:8000": true,
			"learner to broker:8443": true, "worker to broker:8443": true, "reader to broker:8443": true,
			"reader to tinkersim:8000":  true, // it serves the files that a person downloads
			"broker to tinkersim:8000":  true,
			"prometheus to broker:8081": true, "stranger to broker:8081": true,
			"worker to server:22": true, // the environment chooses the port of its server
			// A value of the chart says who may scrape; without the value, any pod may whose own policies permit it.
			"prometheus to manager:8443": true, "stranger to manager:8443": true,
			// The chart has no policy of a stranger.
			"stranger to prometheus": true,
		}
		for from := range rendered.peers {
			for to, pod := range rendered.peers {
				for _, port := range pod.ports {
					if from == to || to == "stranger" && rendered.peers[from].Namespace == "monitoring" {
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
