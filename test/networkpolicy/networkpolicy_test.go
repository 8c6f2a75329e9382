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

// pod returns the pod NAMESPACE/APP.
func pod(name string) networkpolicy.Pod {
	namespace, app, _ := strings.Cut(name, "/")
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
		from, to string
		port     int32
		want     bool
	}{
		"a peer":                        {"shop/web", "shop/server", 80, true},
		"a peer of another namespace":   {"night/batch", "shop/server", 80, true},
		"another port":                  {"shop/web", "shop/server", 22, false},
		"a port for everybody":          {"night/guest", "shop/server", 9090, true},
		"no peer":                       {"shop/guest", "shop/server", 80, false},
		"egress to another namespace":   {"shop/web", "night/server", 80, false},
		"egress without a rule":         {"shop/server", "shop/guest", 80, false},
		"ingress that no policy limits": {"shop/guest", "shop/web", 80, true},
		"pods without policies":         {"night/web", "night/server", 22, true},
	} {
		flow := networkpolicy.Flow{From: pod(test.from), To: pod(test.to), Port: test.port}
		if got := policies.Permits(flow); got != test.want {
			t.Errorf("%s: Permits is %t, want %t", name, got, test.want)
		}
	}
}

func TestUnused(t *testing.T) {
	policies := read(t)
	web := networkpolicy.Flow{From: pod("shop/web"), To: pod("shop/server"), Port: 80}
	batch := networkpolicy.Flow{From: pod("night/batch"), To: pod("shop/server"), Port: 80}
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
		"an unknown field": {"policyTypes: [Egress]", "policyType: Egress", "policyType"},
		"a block of addresses": {"podSelector: {matchLabels: {app: server}}}]", "ipBlock: {cidr: 10.0.0.0/8}}]",
			"block of addresses"},
	} {
		changed := strings.Replace(manifests, test.old, test.replacement, 1)
		if _, err := networkpolicy.Read([]byte(changed)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Read returns %v, want an error that names %q", name, err, test.want)
		}
	}
}
