// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// A standby takes a Lease that it has not seen renewed for leaseDuration. The holder gives up after renewDeadline
// without a renewal, and does not act later than leaseUse after it sent the last renewal that succeeded. So it stops
// before a standby may take the Lease, even if the holder notices nothing.
const (
	leaseDuration = 6 * time.Second
	leaseUse      = 5 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = time.Second
)

// lease is the Lease of an endpoint's broker.
type lease struct {
	resourcelock.Interface
	// renewed is when the last renewal that succeeded was sent.
	renewed atomic.Pointer[time.Time]
	// acquired says that this broker has held the Lease.
	acquired atomic.Bool
	now      func() time.Time
}

// errNotHeld says why a standby does not act.
var errNotHeld = errors.New("another broker holds the Lease")

func newLease(o options, leases coordinationv1client.LeasesGetter) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the broker: %w", err)
	}
	return &lease{now: time.Now, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.namespace, Name: endpoint.ObjectName(o.endpoint)},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()},
	}}, nil
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lease) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := l.now()
	if err := do(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity != l.Identity() {
		l.renewed.Store(nil) // the holder releases it
		return nil
	}
	l.renewed.Store(&sent)
	l.acquired.Store(true)
	return nil
}

// valid returns why the broker may not act, or nil. It compares both clocks: the monotonic one stands still while the
// machine sleeps.
func (l *lease) valid() error {
	renewed, now := l.renewed.Load(), l.now()
	if renewed == nil {
		return errNotHeld
	}
	if now.Sub(*renewed) > leaseUse || now.Round(0).Sub(renewed.Round(0)) > leaseUse {
		return fmt.Errorf("its Lease was not renewed for %s", leaseUse)
	}
	return nil
}

// elect stands for election until ctx ends, and calls lead once it holds the Lease, with a context that ends when the
// Lease is lost. It releases the Lease after lead has returned, and then returns.
func (l *lease) elect(ctx context.Context, lead func(context.Context)) error {
	standing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	led := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: l.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				defer close(led)
				defer release()
				lead(held)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the election: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		if !l.acquired.Load() {
			release()
		}
	})
	defer stop()
	elector.Run(standing)
	if l.acquired.Load() {
		<-led
	}
	return nil
}
