// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package objectmap

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMap(t *testing.T) {
	object := func(name string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: uid}}
	}
	var m Map[int]
	expect := func(what string, pod *corev1.Pod, want int) {
		t.Helper()
		if got := m.Get(pod); got != want {
			t.Errorf("the value of %s is %d, want %d", what, got, want)
		}
	}
	first := object("pod", "first")
	expect("an object without a value", first, 0)
	m.Set(first, 1)
	m.Set(first, 2)
	m.Set(object("other", "other"), 3)
	expect("the object", first, 2)
	expect("one that replaced it", object("pod", "second"), 0)
	m.Forget(client.ObjectKeyFromObject(first))
	expect("a forgotten object", first, 0)
	expect("another", object("other", "other"), 3)
}
