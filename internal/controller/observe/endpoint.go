// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/prices"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// observeEndpoint finds the use that a run may make of the TinkerEndpoint that it names.
func (o *Observer) observeEndpoint(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) error {
	named := run.Spec.Tinker.EndpointRef
	if named == nil {
		return nil
	}
	disabled := endpoint.Use{Problem: &problem.Problem{Code: problem.EndpointsDisabled,
		Evidence: fmt.Sprintf("%q", named.Name)}}
	if o.Endpoints == nil {
		seen.Endpoint, seen.LookAgain = disabled, LookInterval
		return nil
	}
	found, err := Find(ctx, o.Endpoints, "", named.Name, &v1alpha1.TinkerEndpoint{})
	if apierrors.IsForbidden(err) {
		seen.Endpoint, seen.LookAgain = disabled, LookInterval
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading TinkerEndpoint %s: %w", named.Name, err)
	}
	if found != nil {
		if other := endpoint.ServedElsewhere(found, o.Namespace); other != "" {
			seen.Endpoint, seen.LookAgain = servedElsewhere(named.Name, other), LookInterval
			return nil
		}
	}
	labels, err := o.labels.of(ctx, o.Live, run.Namespace, o.Now())
	if err != nil {
		return err
	}
	seen.Endpoint = endpoint.UseOf(run, found, labels, o.Fixed, o.Now())
	if found != nil {
		seen.Endpoint.Check = endpoint.CheckOf(found, run.Spec.Model, o.Now())
		if seen.Endpoint.Prices, err = o.prices.of(ctx, o.Live, found, o.Now()); err != nil {
			return err
		}
	}
	if seen.Endpoint.Problem != nil || seen.Endpoint.BudgetReached != "" {
		seen.LookAgain = LookInterval
	}
	return nil
}

// servedElsewhere is the use of an endpoint whose broker another release of the operator runs: that broker does not
// accept the tokens of this release.
func servedElsewhere(name, namespace string) endpoint.Use {
	return endpoint.Use{Problem: &problem.Problem{Code: problem.EndpointsDisabled,
		Evidence: fmt.Sprintf("the release in namespace %q serves %q", namespace, name),
		Repair: "Name a TinkerEndpoint of this release, or have that release watch the namespace of the run. " +
			endpoint.Succession}}
}

// namespaceLabels has the labels of namespaces as they were a moment ago. Its zero value is ready.
type namespaceLabels struct {
	mu    sync.Mutex
	known map[string]labelsAt
}

type labelsAt struct {
	labels map[string]string
	at     time.Time
}

// NamespaceLabels returns the labels of a namespace; nil if the namespace does not exist.
func NamespaceLabels(ctx context.Context, live client.Reader, name string) (map[string]string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	found, err := Find(ctx, live, "", name, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if found == nil {
		return nil, nil
	}
	return found.Labels, nil
}

// of returns the labels of a namespace. It reads them again after LookInterval.
func (n *namespaceLabels) of(ctx context.Context, live client.Reader, name string,
	now time.Time) (map[string]string, error) {
	n.mu.Lock()
	known, ok := n.known[name]
	n.mu.Unlock()
	if ok && now.Sub(known.at) < LookInterval {
		return known.labels, nil
	}
	found, err := NamespaceLabels(ctx, live, name)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]labelsAt{}
	}
	n.known[name] = labelsAt{found, now}
	return found, nil
}

// endpointPrices has the prices of endpoints as they were a moment ago. Its zero value is ready.
type endpointPrices struct {
	mu    sync.Mutex
	known map[string]pricesAt
}

type pricesAt struct {
	prices map[string]spending.Price
	// spec is the generation of the endpoint.
	spec int64
	at   time.Time
}

// of returns the prices of an endpoint by model; nil if the endpoint has none of its own, or if they cannot be read,
// which the status of the endpoint shows. It reads them again after LookInterval.
func (p *endpointPrices) of(ctx context.Context, live client.Reader, of *v1alpha1.TinkerEndpoint,
	now time.Time) (map[string]spending.Price, error) {
	if of.Spec.Prices == nil || of.Status.Namespace == "" {
		return nil, nil
	}
	p.mu.Lock()
	known, ok := p.known[of.Name]
	p.mu.Unlock()
	if ok && known.spec == of.Generation && now.Sub(known.at) < LookInterval {
		return known.prices, nil
	}
	named := of.Spec.Prices.ConfigMapKeyRef
	config, err := Find(ctx, live, of.Status.Namespace, named.Name, &corev1.ConfigMap{})
	if err != nil {
		return nil, fmt.Errorf("reading the prices of TinkerEndpoint %s: %w", of.Name, err)
	}
	known = pricesAt{spec: of.Generation, at: now}
	if config != nil {
		known.prices, _ = prices.Parse([]byte(config.Data[named.Key])) // The condition of the endpoint has the error.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]pricesAt{}
	}
	p.known[of.Name] = known
	return known.prices, nil
}
