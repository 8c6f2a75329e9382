// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/prices"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// observed is the state of an endpoint in the cluster, read once.
type observed struct {
	// runs are the runs that name the endpoint, with the labels of their namespaces.
	runs []namespacedRun
	// ready is the number of the broker's pods that serve, and obstacle the problem that keeps them from starting; the
	// zero value if none is known.
	ready    int32
	obstacle problem.Problem
	// report is the broker's report; nil before the first.
	report *endpoint.Report
	// former are the settings that the ConfigMap has, encoded; empty if it does not exist.
	former string
	// prices are the endpoint's own prices, and unreadable is the reason why they cannot be read; empty if they can.
	prices     map[string]spending.Price
	unreadable string
	// missing describes a ConfigMap or a key that the spec names and that does not exist; empty if there is none.
	missing string
}

// namespacedRun is a run with the labels of its namespace.
type namespacedRun struct {
	run       *v1alpha1.TrainingRun
	namespace map[string]string
	// creator is the user who created the run, or empty if that is not known for certain.
	creator string
}

func (r *Reconciler) observe(ctx context.Context, of *v1alpha1.TinkerEndpoint) (observed, error) {
	var seen observed
	var err error
	if seen.runs, err = r.observeRuns(ctx, of); err != nil {
		return observed{}, err
	}
	if err := r.observeBroker(ctx, of, &seen); err != nil {
		return observed{}, err
	}
	settings, err := r.configMap(ctx, endpoint.SettingsName(of.Name))
	if err != nil {
		return observed{}, err
	}
	if settings != nil {
		seen.former = settings.Data[endpoint.SettingsKey]
	}
	report, err := r.configMap(ctx, endpoint.ReportName(of.Name))
	if err != nil {
		return observed{}, err
	}
	if report != nil {
		decoded := &endpoint.Report{}
		if json.Unmarshal([]byte(report.Data[endpoint.ReportKey]), decoded) == nil {
			seen.report = decoded
		}
	}
	return seen, r.observeReferences(ctx, of, &seen)
}

// observeRuns finds the runs that name the endpoint.
func (r *Reconciler) observeRuns(ctx context.Context, of *v1alpha1.TinkerEndpoint) ([]namespacedRun, error) {
	var runs v1alpha1.TrainingRunList
	// The runs are the cache's own objects, and must not be changed.
	if err := r.Client.List(ctx, &runs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var found []namespacedRun
	labels := map[string]map[string]string{}
	for i := range runs.Items {
		run := &runs.Items[i]
		named := run.Spec.Tinker.EndpointRef
		if named == nil || named.Name != of.Name || run.DeletionTimestamp != nil {
			continue
		}
		if _, ok := labels[run.Namespace]; !ok {
			var err error
			if labels[run.Namespace], err = observe.NamespaceLabels(ctx, r.Live, run.Namespace); err != nil {
				return nil, err
			}
		}
		one := namespacedRun{run: run, namespace: labels[run.Namespace]}
		if r.TrustCreators {
			one.creator = run.Annotations[v1alpha1.AnnotationCreator]
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b namespacedRun) int {
		return strings.Compare(a.run.Namespace+"/"+a.run.Name, b.run.Namespace+"/"+b.run.Name)
	})
	return found, nil
}

// observeBroker counts the broker's pods that serve, and finds the problem that keeps them from starting.
func (r *Reconciler) observeBroker(ctx context.Context, of *v1alpha1.TinkerEndpoint, seen *observed) error {
	deployment, err := observe.Find(ctx, r.Live, r.Settings.Namespace, endpoint.ObjectName(of.Name),
		&appsv1.Deployment{})
	if err != nil {
		return fmt.Errorf("reading the broker's Deployment: %w", err)
	}
	if deployment == nil || !metav1.IsControlledBy(deployment, of) {
		return nil
	}
	if seen.ready = deployment.Status.ReadyReplicas; seen.ready > 0 {
		return nil
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(r.Settings.Namespace),
		client.MatchingLabels(desired.BrokerLabels(of.Name))); err != nil {
		return fmt.Errorf("listing the broker's pods: %w", err)
	}
	for i := range pods.Items {
		if seen.obstacle, err = r.obstacleOf(ctx, &pods.Items[i]); err != nil || seen.obstacle.Code != "" {
			return err
		}
	}
	return nil
}

// obstacleOf returns the problem that keeps a pod of the broker from starting.
func (r *Reconciler) obstacleOf(ctx context.Context, pod *corev1.Pod) (problem.Problem, error) {
	if pod.DeletionTimestamp != nil {
		return problem.Problem{}, nil
	}
	found := podstate.Waiting(pod, desired.BrokerContainer, podstate.Fields{Image: "the operator's image",
		Secret: func(string) string { return "spec.apiKeySecretKeyRef" }, Claim: func(string) string { return "the chart" },
		Pod: "the chart's value endpoints.broker"})
	if found.NeedsAction() {
		return problem.Problem{Code: problem.BrokerUnavailable, Evidence: strings.TrimSuffix(found.Sentences(), ".")}, nil
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending {
		return problem.Problem{}, nil
	}
	words, err := refusal.OfMounts(ctx, r.Live, pod)
	if err != nil || words == "" {
		return problem.Problem{}, err
	}
	return problem.Problem{Code: mountCode(words), Evidence: strings.TrimSuffix(strings.Join(strings.Fields(words), " "),
		".")}, nil
}

// mountCode returns the code for the kubelet's words about a volume that a pod of the broker lacks.
func mountCode(words string) problem.Code {
	if strings.Contains(words, "not found") || strings.Contains(words, "non-existent") {
		return problem.EndpointObjectNotFound
	}
	return problem.BrokerUnavailable
}

// observeReferences reads the ConfigMaps that the spec names. Secrets are mounted by the broker alone.
func (r *Reconciler) observeReferences(ctx context.Context, of *v1alpha1.TinkerEndpoint, seen *observed) error {
	if named := of.Spec.CABundleConfigMapKeyRef; named != nil {
		if _, ok, err := r.value(ctx, *named); err != nil {
			return err
		} else if !ok {
			seen.missing = fmt.Sprintf("key %q of ConfigMap %q of spec.caBundleConfigMapKeyRef", named.Key, named.Name)
		}
	}
	if of.Spec.Prices == nil {
		return nil
	}
	named := of.Spec.Prices.ConfigMapKeyRef
	table, ok, err := r.value(ctx, named)
	switch {
	case err != nil:
		return err
	case !ok:
		seen.unreadable = fmt.Sprintf("ConfigMap %q with the key %q does not exist", named.Name, named.Key)
	default:
		if seen.prices, err = prices.Parse([]byte(table)); err != nil {
			seen.unreadable = fmt.Sprintf("ConfigMap %q: %v", named.Name, err)
		}
	}
	return nil
}

// value reads a key of a ConfigMap in the operator's namespace.
func (r *Reconciler) value(ctx context.Context, named ref.ConfigMapKey) (text string, ok bool, err error) {
	found, err := r.configMap(ctx, named.Name)
	if err != nil || found == nil {
		return "", false, err
	}
	text, ok = found.Data[named.Key]
	return text, ok, nil
}

func (r *Reconciler) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	found, err := observe.Find(ctx, r.Live, r.Settings.Namespace, name, &corev1.ConfigMap{})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	return found, nil
}
