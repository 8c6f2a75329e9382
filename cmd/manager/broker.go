// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// brokerFlags are the flags about TinkerEndpoints and their brokers, as they are given.
type brokerFlags struct {
	names, pod, accessMode, storageSize string
	namespaceLabels, fixedLabels        string
}

// add defines the flags.
func (f *brokerFlags) add(set *flag.FlagSet, o *options) {
	set.BoolVar(&o.endpoints.Enabled, "serve-endpoints", false,
		"Run the brokers of TinkerEndpoints in the manager's namespace, which needs permissions there.")
	set.StringVar(&f.names, "endpoints", "",
		"TinkerEndpoints to serve, separated by commas; without it all, which needs permission to watch them. With "+
			"--namespaces it is required.")
	set.BoolVar(&o.endpoints.TrustCreators, "trust-creators", false,
		"Have usage name the user of the annotation rl.tinker-operator.dev/creator of a run, which an admission policy "+
			"must keep true.")
	set.StringVar(&f.namespaceLabels, "namespace-labels", "",
		"Labels by which budgets may select runs, separated by commas, and which runs have as their namespaces have them: a "+
			"run with another value waits.")
	set.StringVar(&f.fixedLabels, "fixed-labels", "",
		"Labels by which budgets may select runs, separated by commas, and which an admission policy of yours fixes.")
	set.StringVar(&f.pod, "broker-pod", "{}",
		"JSON object with what the pods of brokers have: the fields of --pod-defaults.")
	set.StringVar(&o.broker.StorageClass, "broker-storage-class", "",
		"StorageClass of the records of brokers; without it the cluster's default.")
	set.StringVar(&f.accessMode, "broker-access-mode", string(corev1.ReadWriteOnce),
		"Access mode of the records of brokers: ReadWriteOnce has both replicas prefer one node, ReadWriteMany does not.")
	set.StringVar(&f.storageSize, "broker-storage-size", "1Gi", "Size of the records of a broker.")
}

// read reads the values of the flags.
func (f *brokerFlags) read(o *options) error {
	o.endpoints.Names = list(f.names)
	if !o.endpoints.Enabled {
		return nil
	}
	if len(o.namespaces) > 0 && len(o.endpoints.Names) == 0 {
		return errors.New("--endpoints is required beside --namespaces and --serve-endpoints: name the TinkerEndpoints " +
			"to serve")
	}
	if o.operatorNamespace() == "" {
		return errors.New("--leader-election-namespace is required beside --serve-endpoints outside of a cluster: " +
			"brokers run in that namespace")
	}
	fixed := &o.endpoints.Fixed
	var err error
	if fixed.OfNamespace, err = labelKeys(f.namespaceLabels); err != nil {
		return fmt.Errorf("reading --namespace-labels: %w", err)
	}
	if fixed.ByPolicy, err = labelKeys(f.fixedLabels); err != nil {
		return fmt.Errorf("reading --fixed-labels: %w", err)
	}
	if o.broker.Pod, err = desired.DecodePodDefaults(f.pod); err != nil {
		return fmt.Errorf("reading --broker-pod: %w", err)
	}
	switch mode := corev1.PersistentVolumeAccessMode(f.accessMode); mode {
	case corev1.ReadWriteOnce, corev1.ReadWriteMany:
		o.broker.AccessMode = mode
	default:
		return fmt.Errorf("reading --broker-access-mode: %q is neither ReadWriteOnce nor ReadWriteMany", f.accessMode)
	}
	if o.broker.StorageSize, err = resource.ParseQuantity(f.storageSize); err != nil {
		return fmt.Errorf("reading --broker-storage-size: %w", err)
	}
	return nil
}

// labelKeys reads keys of labels.
func labelKeys(text string) ([]string, error) {
	keys := list(text)
	for _, key := range keys {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return nil, fmt.Errorf("%q is no key of a label: %s", key, strings.Join(wrong, "; "))
		}
	}
	return keys, nil
}
