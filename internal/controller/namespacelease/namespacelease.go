// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacelease lets only one of several managers act in a namespace: the holder of a Lease in that namespace.
// The replicas of a manager are one holder; leader election decides which of them acts.
package namespacelease

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=runs.rl.tinker-operator.dev,verbs=get;update

// Name is the Lease's name in each namespace.
const Name = "runs.rl.tinker-operator.dev"

const (
	// Duration is the time for which a manager holds a namespace after its last renewal.
	Duration = 2 * time.Minute
	// renewEvery is the time between two renewals.
	renewEvery = Duration / 4
	// lookEvery is the time between two looks at the lease of another manager.
	lookEvery = 15 * time.Second
)

// Leases are the namespaces that a manager holds. A nil Leases holds all of them. New makes one.
type Leases struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	identity string
	now      func() time.Time

	mu         sync.Mutex
	namespaces map[string]held
	// told has the holder that the newest event at an object names.
	told objectmap.Map[string]
}

// held is the result of the newest look at a Lease.
type held struct {
	// by is the other manager that holds the namespace; "" if this one does.
	by string
	// until is the time of the next look.
	until time.Time
}

// New returns the Leases of the manager with an identity; nil, which holds all namespaces, if the identity is empty.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, identity string,
	now func() time.Time) *Leases {
	if identity == "" {
		return nil
	}
	return &Leases{client: c, live: live, recorder: recorder, identity: identity, now: now, namespaces: map[string]held{}}
}

// Wait returns the time for which to leave an object alone because another manager holds its namespace; 0 if this one
// does. An event and a line of the log say so once for each object and holder.
func (l *Leases) Wait(ctx context.Context, object client.Object) (time.Duration, error) {
	if l == nil {
		return 0, nil
	}
	found, err := l.look(ctx, object.GetNamespace())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return time.Second, nil // Another manager was first.
	}
	if err != nil {
		return 0, err
	}
	if found.by == "" {
		l.told.Set(object, "")
		return 0, nil
	}
	if l.told.Get(object) != found.by {
		l.told.Set(object, found.by)
		note := fmt.Sprintf("The manager in namespace %s leaves this object alone: the manager in namespace %s manages "+
			"namespace %s. "+
			"Let only one release of the operator watch a namespace. Once the other one has been uninstalled for %.0f "+
			"minutes, this one takes over.",
			l.identity, found.by, object.GetNamespace(), Duration.Minutes())
		ctrl.LoggerFrom(ctx).Info("another manager manages this namespace", "holder", found.by)
		record.Events(l.recorder, object, record.Warning(record.ManagedByOtherManager, "Refuse", note))
	}
	return max(time.Second, found.until.Sub(l.now())), nil
}

// Holds reports whether this manager acts in a namespace.
func (l *Leases) Holds(ctx context.Context, namespace string) (bool, error) {
	if l == nil {
		return true, nil
	}
	found, err := l.look(ctx, namespace)
	return err == nil && found.by == "", err
}

// Start renews the Leases of the namespaces that have objects, until the context ends. Reconciles do not suffice for
// that: the runs of a namespace may all wait for longer than a Lease lasts. The manager calls it on the leader alone.
func (l *Leases) Start(ctx context.Context) error {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			l.renewAll(ctx)
		}
	}
}

// renewAll renews the Leases that this manager holds and needs, and forgets the other namespaces.
func (l *Leases) renewAll(ctx context.Context) {
	for _, namespace := range l.holding() {
		used, err := l.inUse(ctx, namespace)
		if err == nil && !used {
			l.mu.Lock()
			delete(l.namespaces, namespace)
			l.mu.Unlock()
			continue
		}
		if _, err := l.look(ctx, namespace); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "renewing the lease of a namespace")
		}
	}
}

// holding lists the namespaces that this manager holds.
func (l *Leases) holding() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for namespace, found := range l.namespaces {
		if found.by == "" {
			names = append(names, namespace)
		}
	}
	return names
}

// inUse reports whether a namespace has a run or an environment.
func (l *Leases) inUse(ctx context.Context, namespace string) (bool, error) {
	for _, list := range []client.ObjectList{&v1alpha1.TrainingRunList{}, &v1alpha1.RewardEnvironmentList{}} {
		if err := l.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return false, err
		}
		if meta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// Forget drops the state of an object that no longer exists.
func (l *Leases) Forget(object client.ObjectKey) {
	if l != nil {
		l.told.Forget(object)
	}
}

// look returns the holder of a namespace, and takes or renews the Lease if no other manager holds it.
func (l *Leases) look(ctx context.Context, namespace string) (held, error) {
	l.mu.Lock()
	defer l.mu.Unlock() // One goroutine at a time renews.
	now := l.now()
	if known, is := l.namespaces[namespace]; is && now.Before(known.until) {
		return known, nil
	}
	lease := &coordinationv1.Lease{}
	err := l.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, lease)
	if client.IgnoreNotFound(err) != nil {
		return l.without(ctx, namespace, err, now)
	}
	if by := holder(lease, now); by != "" && by != l.identity {
		l.namespaces[namespace] = held{by: by, until: now.Add(min(lookEvery, expiry(lease).Sub(now)))}
		return l.namespaces[namespace], nil
	}
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		}}
		l.hold(lease, now)
		err = l.client.Create(ctx, lease)
	} else {
		l.hold(lease, now)
		err = l.client.Update(ctx, lease) // It fails if another manager was first.
	}
	if err != nil {
		return l.without(ctx, namespace, err, now)
	}
	l.namespaces[namespace] = held{until: now.Add(renewEvery)}
	return l.namespaces[namespace], nil
}

// without handles a Lease that cannot be read or written. A namespace that is being deleted gets no Lease, and a
// manager without the permission to write Leases acts without one.
func (l *Leases) without(ctx context.Context, namespace string, err error, now time.Time) (held, error) {
	if !apierrors.IsForbidden(err) {
		return held{}, fmt.Errorf("taking the lease of namespace %s: %w", namespace, err)
	}
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		ctrl.LoggerFrom(ctx).Error(err, "taking the lease of a namespace: nothing keeps two managers from acting in it",
			"namespace", namespace)
	}
	l.namespaces[namespace] = held{until: now.Add(renewEvery)}
	return l.namespaces[namespace], nil
}

// hold makes this manager the holder of a Lease from now on.
func (l *Leases) hold(lease *coordinationv1.Lease, now time.Time) {
	at := metav1.NewMicroTime(now)
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.identity {
		lease.Spec.AcquireTime = &at
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, -1) + 1)
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To(l.identity), &at
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(Duration.Seconds()))
}

// holder returns the identity that holds a Lease at a time; "" if there is none.
func holder(lease *coordinationv1.Lease, now time.Time) string {
	if !now.Before(expiry(lease)) {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func expiry(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Add(time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second)
}
