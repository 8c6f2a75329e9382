// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// advance moves the manager's clock. It first waits until the manager has reconciled the earlier changes of the spec
// and of the Job controller: a deadline would otherwise expire although it was met, and a wait would begin only
// afterwards. Then it makes the manager reconcile everything, because requeues follow the machine's clock.
func (w *env) advance(by time.Duration) {
	GinkgoHelper()
	w.awaitReconciles()
	w.clock.advance(by)
	w.reconcileAll()
}

// awaitReconciles waits until the manager has reconciled each run in the state that the API server has now.
func (w *env) awaitReconciles() {
	GinkgoHelper()
	if w.view == nil {
		return
	}
	w.awaitCache()
	for _, run := range w.reconcileAll() {
		Eventually(func(g Gomega) {
			if apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(run), &v1alpha1.TrainingRun{})) {
				return
			}
			g.Expect(w.reads.of(run.GetUID())).To(BeNumerically(">=", version(run.GetResourceVersion())))
		}).Should(Succeed(), "the manager has not begun to reconcile run %s", run.GetName())
	}
	Eventually(activeReconciles, "1m", "1ms").Should(BeZero())
}

// activeReconciles returns the number of runs that are being reconciled.
func activeReconciles() float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "controller_runtime_active_workers" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == "trainingrun" {
				return metric.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// reads are the newest versions of runs that a manager has read to reconcile them.
type reads struct {
	mu       sync.Mutex
	versions map[types.UID]uint64
}

func (r *reads) of(run types.UID) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[run]
}

// by returns a constructor of clients that note in r what they read.
func (r *reads) by(inner client.NewClientFunc) client.NewClientFunc {
	if inner == nil {
		inner = client.New
	}
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		c, err := inner(config, options)
		return notingClient{c, r}, err
	}
}

type notingClient struct {
	client.Client
	reads *reads
}

func (c notingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	if run, ok := object.(*v1alpha1.TrainingRun); ok && err == nil {
		c.reads.mu.Lock()
		defer c.reads.mu.Unlock()
		c.reads.versions[run.UID] = max(c.reads.versions[run.UID], version(run.ResourceVersion))
	}
	return err
}

// touched returns a patch that leaves a controller nothing to do.
func touched() client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`,
		time.Now()))
}

// reconcileAll makes the manager reconcile all environments and runs, and returns the runs.
func (w *env) reconcileAll() []client.Object {
	GinkgoHelper()
	for _, object := range w.list(kube, &v1alpha1.RewardEnvironmentList{}) {
		Expect(client.IgnoreNotFound(kube.Patch(context.Background(), object, touched()))).To(Succeed())
	}
	runs := w.list(kube, &v1alpha1.TrainingRunList{})
	for _, run := range runs {
		Expect(client.IgnoreNotFound(kube.Patch(context.Background(), run, touched()))).To(Succeed())
	}
	return runs
}

// list returns the objects of a kind in the namespace from a reader, without the pods that no manager caches.
func (w *env) list(reader client.Reader, list client.ObjectList) []client.Object {
	GinkgoHelper()
	Expect(reader.List(context.Background(), list, client.InNamespace(w.namespace))).To(Succeed())
	var objects []client.Object
	Expect(meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		switch object.(type) {
		case *batchv1.Job, *corev1.Pod, *corev1.Service:
			if object.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
				return nil
			}
		}
		if _, pod := object.(*corev1.Pod); pod && object.GetLabels()[v1alpha1.LabelRole] == v1alpha1.RoleRollout {
			return nil
		}
		objects = append(objects, object)
		return nil
	})).To(Succeed())
	return objects
}

// awaitCache waits until the manager's cache is as new as the API server is now. While no manager runs, there is no
// cache, and it returns at once.
func (w *env) awaitCache() {
	GinkgoHelper()
	if w.view == nil {
		return
	}
	// The cache of a manager that was started a moment ago refuses reads until it is started itself.
	Eventually(func() error {
		return w.view.List(context.Background(), &v1alpha1.TrainingRunList{}, client.InNamespace(w.namespace))
	}).Should(Succeed())
	for _, kind := range []func() client.ObjectList{
		func() client.ObjectList { return &v1alpha1.TrainingRunList{} },
		func() client.ObjectList { return &v1alpha1.RewardEnvironmentList{} },
		func() client.ObjectList { return &batchv1.JobList{} },
		func() client.ObjectList { return &corev1.PodList{} },
		func() client.ObjectList { return &corev1.ServiceList{} },
	} {
		Eventually(func() []string {
			list := kind()
			listed := w.list(kube, list)
			return behind(w.list(w.view, kind()), listed, version(list.GetResourceVersion()))
		}).Should(BeEmpty(), "the manager's cache is behind")
	}
}

// behind names the objects that a cache does not show as they were listed at a version of the API server.
func behind(cached, listed []client.Object, at uint64) []string {
	versions := map[types.UID]uint64{}
	for _, object := range cached {
		versions[object.GetUID()] = version(object.GetResourceVersion())
	}
	var names []string
	exists := map[types.UID]bool{}
	for _, object := range listed {
		exists[object.GetUID()] = true
		if has, ok := versions[object.GetUID()]; !ok || has < version(object.GetResourceVersion()) {
			names = append(names, object.GetName())
		}
	}
	for _, object := range cached {
		if !exists[object.GetUID()] && versions[object.GetUID()] <= at {
			names = append(names, object.GetName()+", which is deleted")
		}
	}
	return names
}

// version returns a resource version as a number, which grows with each write to the API server.
func version(s string) uint64 {
	GinkgoHelper()
	n, err := strconv.ParseUint(s, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return n
}
