// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package networkpolicy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/test/networkpolicy"
)

const manifests = `apiVersion: v1
kind: Service
metadata: {name: other}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: server, namespace: shop}
spec:
  podSelector: {matchLabels: {app: server}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - namespaceSelector: {}
      podSelector: {matchExpressions: [{key: app, operator: In, values: [web, batch]}]}
    ports: [{protocol: TCP, port: 80}]
  - ports: [{protocol: TCP, port: 9090}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Egress]
  egress:
  - to: [{podSelector: {matchLabels: {app: server}}}]
`

func pod(namespace, app string) networkpolicy.Pod {
	return networkpolicy.Pod{Namespace: namespace, Labels: map[string]string{"app": app}}
}

func read(t *testing.T) networkpolicy.Policies {
	t.Helper()
	policies, err := networkpolicy.Read([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	return policies
}

func TestPermits(t *testing.T) {
	policies := read(t)
	for name, test := range map[string]struct {
		flow networkpolicy.Flow
		want bool
	}{
		"a peer":                        {networkpolicy.Flow{From: pod("shop", "web"), To: pod("shop", "server"), Port: 80}, true},
		"a peer of another namespace":   {networkpolicy.Flow{From: pod("night", "batch"), To: pod("shop", "server"), Port: 80}, true},
		"another port":                  {networkpolicy.Flow{From: pod("shop", "web"), To: pod("shop", "server"), Port: 22}, false},
		"a port for everybody":          {networkpolicy.Flow{From: pod("night", "guest"), To: pod("shop", "server"), Port: 9090}, true},
		"no peer":                       {networkpolicy.Flow{From: pod("shop", "guest"), To: pod("shop", "server"), Port: 80}, false},
		"egress to another namespace":   {networkpolicy.Flow{From: pod("shop", "web"), To: pod("night", "server"), Port: 80}, false},
		"egress without a rule":         {networkpolicy.Flow{From: pod("shop", "server"), To: pod("shop", "guest"), Port: 80}, false},
		"ingress that no policy limits": {networkpolicy.Flow{From: pod("shop", "guest"), To: pod("shop", "web"), Port: 80}, true},
		"pods without policies":         {networkpolicy.Flow{From: pod("night", "web"), To: pod("night", "server"), Port: 22}, true},
	} {
		if got := policies.Permits(test.flow); got != test.want {
			t.Errorf("%s: Permits is %t, want %t", name, got, test.want)
		}
	}
}

func TestUnused(t *testing.T) {
	policies := read(t)
	web := networkpolicy.Flow{From: pod("shop", "web"), To: pod("shop", "server"), Port: 80}
	batch := networkpolicy.Flow{From: pod("night", "batch"), To: pod("shop", "server"), Port: 80}
	if unused := policies.Unused([]networkpolicy.Flow{web, batch}); len(unused) > 0 {
		t.Errorf("Unused is %q, want nothing", unused)
	}
	want := []string{"shop/server Ingress: port 80, pods app in (batch)"}
	if unused := policies.Unused([]networkpolicy.Flow{web}); !slices.Equal(unused, want) {
		t.Errorf("Unused is %q, want %q", unused, want)
	}
	if unused := policies.Unused(nil); len(unused) != 3 {
		t.Errorf("Unused is %q, want 3 rules", unused)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, test := range map[string]struct{ old, replacement, want string }{
		"an unknown field":     {"policyTypes: [Egress]", "policyType: Egress", "policyType"},
		"a block of addresses": {"podSelector: {matchLabels: {app: server}}}]", "ipBlock: {cidr: 10.0.0.0/8}}]", "block of addresses"},
	} {
		changed := strings.Replace(manifests, test.old, test.replacement, 1)
		if _, err := networkpolicy.Read([]byte(changed)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Read returns %v, want an error that names %q", name, err, test.want)
		}
	}
}
