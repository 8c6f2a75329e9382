// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestCheck(t *testing.T) {
	var clock atomic.Int64
	dog := New(func() time.Time { return time.Unix(0, clock.Load()) })
	started, release := make(chan struct{}), make(chan struct{})
	hangs := dog.Watch("trainingrun", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		started <- struct{}{}
		<-release
		return reconcile.Result{}, nil
	}))
	returned := make(chan error)
	go func() {
		_, err := hangs.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "tenant",
			Name: "run"}})
		returned <- err
	}()
	<-started
	quick := dog.Watch("rewardenvironment", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result,
		error) {
		return reconcile.Result{}, nil
	}))
	for _, age := range []time.Duration{0, Limit} {
		clock.Store(int64(age))
		if _, err := quick.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		if err := dog.Check(nil); err != nil {
			t.Errorf("after %s: Check = %v, want nil", age, err)
		}
	}
	clock.Store(int64(Limit + time.Second))
	if err := dog.Check(nil); err == nil || !strings.Contains(err.Error(), "trainingrun tenant/run") {
		t.Errorf("Check = %v, want an error that names the run", err)
	}
	close(release)
	if err := <-returned; err != nil {
		t.Fatal(err)
	}
	if err := dog.Check(nil); err != nil {
		t.Errorf("after the reconcile returned: Check = %v, want nil", err)
	}
}
