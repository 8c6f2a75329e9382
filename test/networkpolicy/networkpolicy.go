// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package networkpolicy says which connections between pods NetworkPolicies permit, for tests on clusters that do not
// enforce them. It knows the parts of the API that the chart uses: selectors of pods, selectors of namespaces by name,
// and numbered ports of TCP.
package networkpolicy

import (
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Pod is a pod as NetworkPolicies see it.
type Pod struct {
	Namespace string
	Labels    map[string]string
}

// Flow is a TCP connection of one pod to a port of another.
type Flow struct {
	From, To Pod
	Port     int32
}

// Policies are all NetworkPolicies of a cluster.
type Policies []networkingv1.NetworkPolicy

// Read returns the NetworkPolicies among rendered manifests. It refuses fields that the API does not have, and blocks
// of addresses, which say nothing about pods.
func Read(manifests []byte) (Policies, error) {
	var found Policies
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		if kind.Kind != "NetworkPolicy" {
			continue
		}
		var policy networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict(document, &policy); err != nil {
			return nil, fmt.Errorf("reading a NetworkPolicy: %w", err)
		}
		for _, r := range rulesOf(policy) {
			for _, p := range r.peers {
				if p.IPBlock != nil {
					return nil, fmt.Errorf("%s: a rule names a block of addresses", policy.Name)
				}
			}
		}
		found = append(found, policy)
	}
	return found, nil
}

// Permits reports whether the policies permit a connection: on each side a rule permits it, or no policy selects the
// pod.
func (p Policies) Permits(f Flow) bool {
	return p.permitsSide(f, networkingv1.PolicyTypeEgress) && p.permitsSide(f, networkingv1.PolicyTypeIngress)
}

// permitsSide reports whether the policies of one side permit a connection.
func (p Policies) permitsSide(f Flow, side networkingv1.PolicyType) bool {
	selected := false
	for _, policy := range p {
		if !governs(policy, f, side) {
			continue
		}
		selected = true
		for _, r := range rulesOf(policy) {
			if r.side == side && r.permits(f) {
				return true
			}
		}
	}
	return !selected
}

// Unused describes each pair of a rule and one of its peers that no connection uses. A peer that lists values of a
// label counts once for each value. Rules without peers, and peers that name no pods, are left out: they are for
// addresses outside of the cluster.
func (p Policies) Unused(flows []Flow) []string {
	var unused []string
	for _, policy := range p {
		for _, r := range rulesOf(policy) {
			for _, peer := range r.peers {
				for _, one := range splitValues(peer) {
					narrow := rule{policy: policy, side: r.side, ports: r.ports, peers: []networkingv1.NetworkPolicyPeer{one}}
					if one.PodSelector != nil && !narrow.isUsed(flows) {
						unused = append(unused, narrow.String())
					}
				}
			}
		}
	}
	return unused
}

// rule is a rule of a policy for one side of a connection.
type rule struct {
	policy networkingv1.NetworkPolicy
	side   networkingv1.PolicyType
	ports  []networkingv1.NetworkPolicyPort
	peers  []networkingv1.NetworkPolicyPeer
}

func rulesOf(policy networkingv1.NetworkPolicy) []rule {
	var rules []rule
	for _, r := range policy.Spec.Ingress {
		rules = append(rules, rule{policy, networkingv1.PolicyTypeIngress, r.Ports, r.From})
	}
	for _, r := range policy.Spec.Egress {
		rules = append(rules, rule{policy, networkingv1.PolicyTypeEgress, r.Ports, r.To})
	}
	return rules
}

func (r rule) String() string {
	var parts []string
	for _, p := range r.ports {
		parts = append(parts, fmt.Sprintf("port %s", p.Port))
	}
	for _, p := range r.peers {
		parts = append(parts, "pods "+metav1.FormatLabelSelector(p.PodSelector))
	}
	return fmt.Sprintf("%s/%s %s: %s", r.policy.Namespace, r.policy.Name, r.side, strings.Join(parts, ", "))
}

// isUsed reports whether one of the connections is permitted by the rule.
func (r rule) isUsed(flows []Flow) bool {
	for _, f := range flows {
		if governs(r.policy, f, r.side) && r.permits(f) {
			return true
		}
	}
	return false
}

func (r rule) permits(f Flow) bool {
	other := f.To
	if r.side == networkingv1.PolicyTypeIngress {
		other = f.From
	}
	return hasPort(r.ports, f.Port) && isPeer(r.peers, other, r.policy.Namespace)
}

// governs reports whether a policy decides about one side of a connection.
func governs(policy networkingv1.NetworkPolicy, f Flow, side networkingv1.PolicyType) bool {
	pod := f.From
	if side == networkingv1.PolicyTypeIngress {
		pod = f.To
	}
	for _, of := range policy.Spec.PolicyTypes {
		if of == side {
			return policy.Namespace == pod.Namespace && selects(policy.Spec.PodSelector, pod.Labels)
		}
	}
	return false
}

func hasPort(ports []networkingv1.NetworkPolicyPort, port int32) bool {
	for _, p := range ports {
		if p.Port.IntVal == port && *p.Protocol == corev1.ProtocolTCP {
			return true
		}
	}
	return len(ports) == 0
}

// isPeer reports whether a pod is one of the peers of a rule of a policy in a namespace.
func isPeer(peers []networkingv1.NetworkPolicyPeer, pod Pod, namespace string) bool {
	for _, p := range peers {
		within := pod.Namespace == namespace
		if p.NamespaceSelector != nil {
			within = selects(*p.NamespaceSelector, map[string]string{corev1.LabelMetadataName: pod.Namespace})
		}
		if within && (p.PodSelector == nil || selects(*p.PodSelector, pod.Labels)) {
			return true
		}
	}
	return len(peers) == 0
}

// selects reports whether a selector selects labels. An invalid selector selects nothing: the API server refuses it.
func selects(selector metav1.LabelSelector, of map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

// splitValues returns a peer for each value that the peer lists of a label.
func splitValues(peer networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
	if peer.PodSelector == nil || len(peer.PodSelector.MatchExpressions) != 1 ||
		peer.PodSelector.MatchExpressions[0].Operator != metav1.LabelSelectorOpIn {
		return []networkingv1.NetworkPolicyPeer{peer}
	}
	var one []networkingv1.NetworkPolicyPeer
	for _, value := range peer.PodSelector.MatchExpressions[0].Values {
		narrow := *peer.DeepCopy()
		narrow.PodSelector.MatchExpressions[0].Values = []string{value}
		one = append(one, narrow)
	}
	return one
}
