// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBrokerFlags reads the flags of brokers, and refuses endpoints that cannot be served.
func TestBrokerFlags(t *testing.T) {
	key := "--manager-key-file=" + keyFile(t, 32)
	const namespace = "--leader-election-namespace=operator"
	got, err := parsed(t, "--image=i", key, namespace, "--serve-endpoints", "--endpoints=prod, dev",
		`--broker-pod={"nodeSelector":{"pool":"core"}}`, "--broker-storage-class=fast",
		"--broker-access-mode=ReadWriteMany", "--broker-storage-size=5Gi", "--trust-creators",
		"--namespace-labels=team, example.com/cost-center", "--fixed-labels=project")
	if err != nil {
		t.Fatal(err)
	}
	if !got.endpoints.Enabled || !got.endpoints.TrustCreators ||
		!slices.Equal(got.endpoints.Names, []string{"prod", "dev"}) {
		t.Errorf("endpoints are %+v", got.endpoints)
	}
	if fixed := got.endpoints.Fixed; !slices.Equal(fixed.OfNamespace, []string{"team", "example.com/cost-center"}) ||
		!slices.Equal(fixed.ByPolicy, []string{"project"}) {
		t.Errorf("fixed labels are %+v", fixed)
	}
	b := got.broker
	if b.Pod.NodeSelector["pool"] != "core" || b.StorageClass != "fast" || b.AccessMode != corev1.ReadWriteMany ||
		b.StorageSize.String() != "5Gi" || got.operatorNamespace() != "operator" {
		t.Errorf("the broker is %+v in %q", b, got.operatorNamespace())
	}
	plain, err := parsed(t, "--image=i", key, namespace, "--serve-endpoints")
	if err != nil || plain.broker.AccessMode != corev1.ReadWriteOnce || plain.broker.StorageSize.String() != "1Gi" {
		t.Errorf("without flags the broker is %+v (%v)", plain.broker, err)
	}
	for wrong, words := range map[string]string{
		"--namespaces=a": "--endpoints is required", "--broker-access-mode=ReadOnlyMany": "--broker-access-mode",
		"--broker-storage-size=much": "--broker-storage-size", "--broker-pod={": "--broker-pod",
		"--namespace-labels=team=a": "--namespace-labels", "--fixed-labels=a/b/c": "--fixed-labels",
	} {
		if _, err := parsed(t, "--image=i", key, namespace, "--serve-endpoints", wrong); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: the error is %v, want %q", wrong, err, words)
		}
	}
	if off, err := parsed(t, "--image=i", key, "--namespaces=a"); err != nil || off.endpoints.Enabled {
		t.Errorf("without --serve-endpoints: %+v, %v", off.endpoints, err)
	}
}
