// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package namespacelease

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

var leases = coordinationv1.Resource("leases")

// apiServer has one Lease, and refuses a write that is based on an older version of the Lease.
type apiServer struct {
	client.Client
	lease   *coordinationv1.Lease
	version int
	refuse  error
	writes  int
	// runs is the number of runs in the namespace.
	runs int
}

func (s *apiServer) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*v1alpha1.TrainingRunList); ok {
		list.Items = make([]v1alpha1.TrainingRun, s.runs)
	}
	return nil
}

func (s *apiServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.lease == nil {
		return apierrors.NewNotFound(leases, key.Name)
	}
	s.lease.DeepCopyInto(into.(*coordinationv1.Lease))
	return nil
}

func (s *apiServer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return s.write(object, s.lease != nil)
}

func (s *apiServer) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return s.write(object, object.GetResourceVersion() != s.lease.ResourceVersion)
}

func (s *apiServer) write(object client.Object, late bool) error {
	if s.refuse != nil {
		return s.refuse
	}
	if late {
		return apierrors.NewConflict(leases, Name, errors.New("changed"))
	}
	s.writes, s.version = s.writes+1, s.version+1
	object.SetResourceVersion(string(rune('a' + s.version)))
	s.lease = object.DeepCopyObject().(*coordinationv1.Lease)
	return nil
}

// world is an API server and a clock, which managers share.
type world struct {
	server *apiServer
	at     time.Time
}

func newWorld() *world {
	return &world{server: &apiServer{}, at: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
}

func (w *world) manager(identity string) (*Leases, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(10)
	return New(w.server, w.server, recorder, identity, func() time.Time { return w.at }), recorder
}

func pod() client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "run", UID: "u"}}
}

// acts reports whether a manager acts on the object now.
func acts(t *testing.T, l *Leases) bool {
	t.Helper()
	wait, err := l.Wait(t.Context(), pod())
	if err != nil {
		t.Fatal(err)
	}
	return wait == 0
}

func TestOneManagerActsInANamespace(t *testing.T) {
	w := newWorld()
	first, silent := w.manager("a")
	second, told := w.manager("b")
	for range 40 {
		if !acts(t, first) {
			t.Fatalf("at %s the first manager does not act", w.at)
		}
		if acts(t, second) {
			t.Fatalf("at %s the second manager acts beside the first", w.at)
		}
		w.at = w.at.Add(10 * time.Second)
	}
	if len(silent.Events) != 0 || len(told.Events) != 1 {
		t.Errorf("%d and %d events, want 0 and 1", len(silent.Events), len(told.Events))
	}
	if w.server.writes > 15 {
		t.Errorf("%d writes in 400 s, want one each 30 s", w.server.writes)
	}
}

func TestNamespaceOfAManagerThatIsGoneIsTakenOver(t *testing.T) {
	w := newWorld()
	first, _ := w.manager("a")
	second, _ := w.manager("b")
	acts(t, first)
	w.at = w.at.Add(Duration - time.Second)
	if acts(t, second) {
		t.Fatal("the second manager acts before the lease has expired")
	}
	w.at = w.at.Add(time.Second)
	if !acts(t, second) {
		t.Fatal("the second manager does not act after the lease has expired")
	}
	if acts(t, first) {
		t.Error("the first manager, which was away, acts beside the second")
	}
}

// TestNamespaceIsHeldWhileItsRunsWait reconciles no run for an hour, as may happen while a run waits for a person: its
// manager still holds the namespace.
func TestNamespaceIsHeldWhileItsRunsWait(t *testing.T) {
	w := newWorld()
	w.server.runs = 1
	first, _ := w.manager("a")
	second, _ := w.manager("b")
	acts(t, first)
	for range int(time.Hour / renewEvery) {
		w.at = w.at.Add(renewEvery)
		first.renewAll(t.Context())
		if acts(t, second) {
			t.Fatalf("at %s the second manager acts in a namespace whose run waits", w.at)
		}
	}
	w.server.runs = 0
	w.at = w.at.Add(renewEvery)
	first.renewAll(t.Context())
	w.at = w.at.Add(Duration)
	if holds, err := second.Holds(t.Context(), "n"); !holds || err != nil {
		t.Errorf("the second manager holds the namespace: %v, %v, want true once the first one needs it no longer", holds,
			err)
	}
}

func TestReplicasOfAManagerAreOneHolder(t *testing.T) {
	w := newWorld()
	first, _ := w.manager("a")
	next, _ := w.manager("a")
	if !acts(t, first) || !acts(t, next) {
		t.Error("a replica that becomes the leader does not act")
	}
}

// TestManagerThatWasLateDoesNotAct lets another manager take the Lease between a read and a write.
func TestManagerThatWasLateDoesNotAct(t *testing.T) {
	w := newWorld()
	late, _ := w.manager("a")
	w.server.refuse = apierrors.NewConflict(leases, Name, errors.New("changed"))
	if wait, err := late.Wait(t.Context(), pod()); wait != time.Second || err != nil {
		t.Errorf("Wait = %s, %v, want one second to look again", wait, err)
	}
	w.server.refuse = errors.New("connection refused")
	if _, err := late.Wait(t.Context(), pod()); err == nil {
		t.Error("a manager that cannot reach the API server acts")
	}
}

func TestManagerWithoutPermissionActsAsBefore(t *testing.T) {
	w := newWorld()
	l, _ := w.manager("a")
	w.server.refuse = apierrors.NewForbidden(leases, Name, errors.New("no"))
	if !acts(t, l) {
		t.Error("a manager that may not write leases does not act")
	}
}

func TestManagerWithoutIdentityHoldsAll(t *testing.T) {
	w := newWorld()
	l, _ := w.manager("")
	if !acts(t, l) || w.server.writes > 0 {
		t.Errorf("without an identity %d writes, want none", w.server.writes)
	}
}
