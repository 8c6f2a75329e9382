// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tinkerendpoint runs the broker of each TinkerEndpoint in the operator's namespace, tells it which runs it
// serves, and shows its reports. It never reads a Secret: only the broker has the API key.
package tinkerendpoint

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/prices"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Reconciler reconciles TinkerEndpoints.
type Reconciler struct {
	// Client reads runs from the cache and writes to the API server.
	Client client.Client
	// Endpoints reads TinkerEndpoints, and Live everything in the operator's namespace, from the API server.
	Endpoints, Live client.Reader
	// Names are the endpoints that the manager may read, if it may not watch all; empty for all.
	Names    []string
	Recorder events.EventRecorder
	// ManagerKey is the key from which the keys of brokers derive.
	ManagerKey []byte
	Settings   desired.Settings
	Now        func() time.Time
	// TrustCreators says that an admission policy keeps the annotation with the creator of a run true.
	TrustCreators bool
	// Fixed are the labels by which budgets may select runs.
	Fixed rules.FixedLabels

	created, pruned *objectmap.Map[time.Time]
	// claims has the newest claim of another manager that was seen, and when it was seen first.
	claims *objectmap.Map[seenClaim]
	// told has the namespace of the manager that the newest event at an endpoint names.
	told *objectmap.Map[string]
}

// New completes a Reconciler.
func New(r Reconciler) *Reconciler {
	r.created, r.pruned = &objectmap.Map[time.Time]{}, &objectmap.Map[time.Time]{}
	r.told, r.claims = &objectmap.Map[string]{}, &objectmap.Map[seenClaim]{}
	return &r
}

// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=tinkerendpoints,verbs=get;list;watch
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=tinkerendpoints/status,verbs=patch
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=tinkerendpoints/finalizers,verbs=update

// Reconcile brings the broker of one endpoint in line with its spec, and the status in line with its broker.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	of, err := observe.Find(ctx, r.Endpoints, "", request.Name, &v1alpha1.TinkerEndpoint{})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading endpoint: %w", err)
	}
	if of == nil || of.DeletionTimestamp != nil {
		// Owner references delete the endpoint's objects with it.
		r.created.Forget(request.NamespacedName)
		r.pruned.Forget(request.NamespacedName)
		r.told.Forget(request.NamespacedName)
		r.claims.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if other := rules.ServedElsewhere(of, r.Settings.Namespace); other != "" {
		if r.isGone(of) {
			return r.takeOver(ctx, of, other)
		}
		r.leave(ctx, of, other)
		return ctrl.Result{RequeueAfter: lookInterval}, nil
	}
	if err := r.renew(ctx, of); apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	seen, err := r.observe(ctx, of)
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := makePlan(of, seen, prices.All(), r.Fixed, r.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, of, computeStatus(of, p, r.Settings.Namespace, r.Now())); apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // This view of the object was old; a newer one is coming.
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if wait := untilBroker(of, r.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: min(wait, lookInterval)}, nil
	}
	if err := r.apply(ctx, of, seen, p); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: lookInterval}, r.prune(ctx, of)
}

// apply creates or updates the objects of a broker.
func (r *Reconciler) apply(ctx context.Context, of *v1alpha1.TinkerEndpoint, seen observed, p plan) error {
	keys, err := r.keys(of)
	if err != nil {
		return err
	}
	if err := r.create(ctx, of, keys); err != nil {
		return err
	}
	if seen.former != string(p.settings) {
		if err := r.keep(ctx, of, desired.BrokerSettingsMap(of, p.settings, r.Settings), true); err != nil {
			return err
		}
	}
	for _, object := range desired.BrokerObjects(of, keys, r.Settings, r.Now()) {
		if err := r.keep(ctx, of, object, false); err != nil {
			return err
		}
	}
	return nil
}

// keys derives the secrets of a broker other than the API key.
func (r *Reconciler) keys(of *v1alpha1.TinkerEndpoint) (desired.BrokerKeys, error) {
	keys := desired.BrokerKeys{Suffix: contract.SecretSuffix(r.ManagerKey, string(of.UID))}
	var err error
	if keys.TokenKey, err = contract.DeriveEndpointKey(r.ManagerKey, of.Name); err != nil {
		return keys, err
	}
	keys.Certificate, keys.PrivateKey, err = contract.DeriveBrokerCertificate(r.ManagerKey, of.Name,
		desired.BrokerHosts(of.Name, r.Settings.Namespace)...)
	return keys, err
}

// createInterval is the time between two attempts to create objects that the manager cannot read or does not change.
const createInterval = time.Minute

// create makes the Secret and the claim of a broker, which are never changed.
func (r *Reconciler) create(ctx context.Context, of *v1alpha1.TinkerEndpoint, keys desired.BrokerKeys) error {
	if at := r.created.Get(of); !at.IsZero() && r.Now().Sub(at) < createInterval {
		return nil
	}
	for _, object := range []client.Object{desired.BrokerSecret(of, keys, r.Settings),
		desired.BrokerClaim(of, r.Settings)} {
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, object)); err != nil {
			return fmt.Errorf("creating %s: %w", object.GetName(), err)
		}
	}
	r.created.Set(of, r.Now())
	return nil
}

// keep creates an object, or updates an existing object whose contents differ. changed says that they differ; otherwise
// the digest in the annotation decides.
func (r *Reconciler) keep(ctx context.Context, of *v1alpha1.TinkerEndpoint, object client.Object, changed bool) error {
	kind, err := apiutil.GVKForObject(object, r.Client.Scheme())
	if err != nil {
		return fmt.Errorf("keeping %s: %w", object.GetName(), err)
	}
	live, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("keeping %s: it is no object", object.GetName())
	}
	live, err = observe.Find(ctx, r.Live, object.GetNamespace(), object.GetName(), live)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind.Kind, object.GetName(), err)
	case live == nil:
		err = client.IgnoreAlreadyExists(r.Client.Create(ctx, object))
	case live.GetLabels()[v1alpha1.LabelEndpoint] != of.Name:
		return fmt.Errorf("%s %s/%s exists, and is not of TinkerEndpoint %s: delete or rename it", kind.Kind,
			object.GetNamespace(), object.GetName(), of.Name)
	case changed, templateOf(live) != templateOf(object), !ownedBy(live, of):
		object.SetResourceVersion(live.GetResourceVersion())
		err = r.Client.Update(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("keeping %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// templateOf returns the digest of an object's contents that the manager has noted in an annotation.
func templateOf(object client.Object) string {
	return object.GetAnnotations()[v1alpha1.AnnotationTemplate]
}

// ownedBy reports whether an object is of this very endpoint, and not of a former one of its name.
func ownedBy(live client.Object, of *v1alpha1.TinkerEndpoint) bool {
	for _, owner := range live.GetOwnerReferences() {
		if owner.UID == of.UID {
			return true
		}
	}
	return false
}

// computeStatus returns the status that an endpoint should have. It does not change the endpoint.
func computeStatus(of *v1alpha1.TinkerEndpoint, p plan, namespace string, now time.Time) v1alpha1.TinkerEndpointStatus {
	next := *of.Status.DeepCopy()
	next.Namespace = namespace
	next.ObservedGeneration = ptr.To(of.Generation)
	next.Runs, next.Usage, next.Capabilities = ptr.To(p.runs), p.usage, p.capabilities
	for _, c := range []status.Condition{p.ready, p.stalled, p.checked} {
		status.Set(&next.Conditions, &next.Codes, of.Generation, now, c)
	}
	return next
}

// writeStatus writes the status if it has changed, and records an event if the condition Ready has.
func (r *Reconciler) writeStatus(ctx context.Context, of *v1alpha1.TinkerEndpoint,
	next v1alpha1.TinkerEndpointStatus) error {
	if equality.Semantic.DeepEqual(of.Status, next) {
		return nil
	}
	before := of.DeepCopy()
	of.Status = next
	if err := record.Status(ctx, r.Client, before, of); err != nil {
		return err
	}
	record.Events(r.Recorder, of, budgetEvents(before, of, r.Now())...)
	_, is, changed := record.Transition(before.Status.Conditions, next.Conditions, v1alpha1.ConditionReady)
	if changed && is != nil {
		event := record.Normal(is.Reason, "Broker", is.Message)
		if is.Status == metav1.ConditionFalse {
			event = record.Warning(is.Reason, "Broker", is.Message)
		}
		record.Events(r.Recorder, of, event)
	}
	return nil
}
