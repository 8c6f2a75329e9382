// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func newMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func newStore(from client.WithWatch, namespace string) *Store[*corev1.ConfigMap] {
	return New[*corev1.ConfigMap](from, namespace, func() client.ObjectList { return &corev1.ConfigMapList{} })
}

func names(s *Store[*corev1.ConfigMap]) string {
	all, err := s.All()
	text := ""
	for _, object := range all {
		text += object.Namespace + "/" + object.Name + "=" + object.Data["value"] + " "
	}
	if err != nil {
		text += "!"
	}
	return text
}

// eventually waits until a store has these objects.
func eventually(t *testing.T, s *Store[*corev1.ConfigMap], want string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); names(s) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the store has %q, want %q", names(s), want)
		}
	}
}

func TestStoreFollowsChanges(t *testing.T) {
	watching := make(chan struct{})
	begun := sync.OnceFunc(func() { close(watching) })
	from := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(newMap("b", "two"),
		newMap("a", "one"), newMap("a", "zero")).Build(), interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) (watch.Interface, error) {
			defer begun()
			return c.Watch(ctx, list, options...)
		},
	})
	s := newStore(from, "")
	if _, err := s.All(); !errors.Is(err, ErrPending) {
		t.Errorf("before the list the error is %v", err)
	}
	go s.Run(t.Context())
	s.Await(t.Context())
	eventually(t, s, "a/one= a/zero= b/two= ")
	before := s.Version()
	<-watching // the changes of a fake API server before its watch are lost
	changed := newMap("a", "one")
	changed.Data = map[string]string{"value": "1"}
	if err := errors.Join(from.Update(t.Context(), changed), from.Delete(t.Context(), newMap("b", "two")),
		from.Create(t.Context(), newMap("c", "three"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, "a/one=1 a/zero= c/three= ")
	if s.Version() <= before {
		t.Errorf("the version has not changed: got %v, want more than %v", s.Version(), before)
	}
	if _, ok := s.Get(client.ObjectKey{Namespace: "b", Name: "two"}); ok {
		t.Error("a deleted object is returned")
	}
}

func TestStoreOfANamespace(t *testing.T) {
	from := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(newMap("b", "two"),
		newMap("a", "one")).Build()
	s := newStore(from, "a")
	go s.Run(t.Context())
	eventually(t, s, "a/one= ")
}

// TestStoreSaysWhyItIsEmpty lists for a person who may not list, and lists again once they may.
func TestStoreSaysWhyItIsEmpty(t *testing.T) {
	var refused atomic.Bool
	refused.Store(true)
	from := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(newMap("a",
		"one")).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if refused.Load() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		},
	})
	s := newStore(from, "")
	go s.Run(t.Context())
	s.Await(t.Context())
	if _, err := s.All(); !apierrors.IsForbidden(err) {
		t.Fatalf("the error is %v", err)
	}
	refused.Store(false)
	eventually(t, s, "a/one= ")
}

// TestStoreListsInPages checks that a store lists a bounded number of objects at a time, and begins its watch at the
// list's version.
func TestStoreListsInPages(t *testing.T) {
	pages, watched := 0, make(chan string, 1)
	from := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var given client.ListOptions
			given.ApplyOptions(options)
			if given.Limit != page || given.Continue != []string{"", "next"}[pages] {
				return fmt.Errorf("page %d is asked for with %+v", pages, given)
			}
			maps, _ := list.(*corev1.ConfigMapList)
			maps.Items = []corev1.ConfigMap{*newMap("a", fmt.Sprint(pages))}
			maps.Continue = []string{"next", ""}[pages]
			maps.ResourceVersion = "7"
			pages++
			return nil
		},
		Watch: func(_ context.Context, _ client.WithWatch, _ client.ObjectList,
			options ...client.ListOption) (watch.Interface, error) {
			var given client.ListOptions
			given.ApplyOptions(options)
			watched <- given.Raw.ResourceVersion
			return watch.NewFake(), nil
		},
	})
	s := newStore(from, "")
	go s.Run(t.Context())
	eventually(t, s, "a/0= a/1= ")
	if version := <-watched; version != "7" {
		t.Errorf("the watch begins at version %q, want 7", version)
	}
}
