// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectmap keeps a controller's state about objects that is not in the API server. All of it may be lost at
// any time, for example when another manager takes over.
package objectmap

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Map keeps a value for each object. An object that replaces another of its name begins with the zero value. A Map is
// safe for concurrent use, and its zero value is ready.
type Map[T any] struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]entry[T]
}

type entry[T any] struct {
	uid   types.UID
	value T
}

// Get returns the value of an object.
func (m *Map[T]) Get(object client.Object) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.objects[client.ObjectKeyFromObject(object)]
	if e.uid != object.GetUID() {
		var zero T
		return zero
	}
	return e.value
}

// Set replaces the value of an object.
func (m *Map[T]) Set(object client.Object, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[types.NamespacedName]entry[T]{}
	}
	m.objects[client.ObjectKeyFromObject(object)] = entry[T]{uid: object.GetUID(), value: value}
}

// Forget drops the value of an object that no longer exists.
func (m *Map[T]) Forget(object types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, object)
}
