// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package live keeps the objects of a kind as the API server has them: it lists them in pages once, and then watches
// them, so that the API server sees one watch of a kind however many pages are open.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the store's requests to the API server.
const (
	// page limits the objects of one answer.
	page = 250
	// firstPause and longestPause bound the pauses between a failure and the next try.
	firstPause, longestPause = time.Second, 30 * time.Second
)

// ErrPending says that the objects have not been listed yet.
var ErrPending = errors.New("the objects are being listed")

// Store has the objects of one kind. It is safe for concurrent use; the objects that it returns must not be changed.
type Store[T client.Object] struct {
	from      client.WithWatch
	namespace string
	newList   func() client.ObjectList

	mu      sync.Mutex
	objects map[client.ObjectKey]T
	err     error
	version uint64
	// listed is closed once the objects were listed, or could not be.
	listed chan struct{}
	once   sync.Once
}

// New returns a store of a namespace, or of all namespaces for "". Run fills it.
func New[T client.Object](from client.WithWatch, namespace string, newList func() client.ObjectList) *Store[T] {
	return &Store[T]{from: from, namespace: namespace, newList: newList, err: ErrPending, listed: make(chan struct{})}
}

// Run keeps the store up to date until the context ends.
func (s *Store[T]) Run(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		began := time.Now()
		if err := s.follow(ctx); err != nil && ctx.Err() == nil {
			s.fail(err)
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Await waits until the objects were listed once, or could not be.
func (s *Store[T]) Await(ctx context.Context) {
	select {
	case <-s.listed:
	case <-ctx.Done():
	}
}

// All returns the objects, sorted by namespace and name. The error says why they are not up to date.
func (s *Store[T]) All() ([]T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]T, 0, len(s.objects))
	for _, object := range s.objects {
		all = append(all, object)
	}
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all, s.err
}

// Get returns an object; false if there is none.
func (s *Store[T]) Get(key client.ObjectKey) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.objects[key]
	return object, ok
}

// Version changes with each change of an object.
func (s *Store[T]) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// follow lists the objects and watches them until the watch ends.
func (s *Store[T]) follow(ctx context.Context) error {
	found, version, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.replace(found)
	list := s.newList()
	changes, err := s.from.Watch(ctx, list, &client.ListOptions{Namespace: s.namespace,
		Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			if err := s.apply(change); err != nil {
				return err
			}
		}
	}
}

// list returns all objects, and the version that a watch begins with.
func (s *Store[T]) list(ctx context.Context) (map[client.ObjectKey]T, string, error) {
	found := map[client.ObjectKey]T{}
	for next := ""; ; {
		list := s.newList() // With the same list, a page would be decoded into the objects of the page before.
		if err := s.from.List(ctx, list, client.InNamespace(s.namespace), client.Limit(page),
			client.Continue(next)); err != nil {
			return nil, "", fmt.Errorf("listing: %w", err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, "", fmt.Errorf("reading a list: %w", err)
		}
		for _, item := range items {
			if object, ok := item.(T); ok {
				found[client.ObjectKeyFromObject(object)] = object
			}
		}
		if next = list.GetContinue(); next == "" {
			return found, list.GetResourceVersion(), nil
		}
	}
}

func (s *Store[T]) replace(found map[client.ObjectKey]T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects, s.err = found, nil
	s.version++
	s.once.Do(func() { close(s.listed) })
}

func (s *Store[T]) apply(change watch.Event) error {
	object, ok := change.Object.(T)
	if !ok && change.Type == watch.Error {
		return fmt.Errorf("watching: %w", apierrors.FromObject(change.Object))
	}
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch change.Type {
	case watch.Added, watch.Modified:
		s.objects[client.ObjectKeyFromObject(object)] = object
	case watch.Deleted:
		delete(s.objects, client.ObjectKeyFromObject(object))
	default:
		return nil
	}
	s.version++
	return nil
}

// fail records an error, and keeps the objects that are known. A watch whose version is too old is not a failure: the
// objects are listed again.
func (s *Store[T]) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		s.err = err
		s.version++
	}
	s.once.Do(func() { close(s.listed) })
}
