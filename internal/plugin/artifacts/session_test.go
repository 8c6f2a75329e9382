// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// newServer serves deliveries as the program of a pod does.
func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		steps := []int64{3}
		if r.URL.Query().Get("step") == "5" && r.URL.Query().Get("evaluation") == "true" {
			steps = []int64{3, 5}
		}
		if err := delivery.Write(w, delivery.Delivery{Steps: steps}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// direct connects to an address instead of a pod's port.
type direct string

func (d direct) Dial() (net.Conn, error) { return net.Dial("tcp", string(d)) }

func (direct) Close() error { return nil }

// running sets the phase of a fixture's pod to Running.
func running(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }

// TestSession asks a pod several questions over a forwarded port, and deletes it.
func TestSession(t *testing.T) {
	f := newFixture(t, running, "")
	asked := []string{}
	at := direct(newServer(t).Listener.Addr().String())
	f.reader.Forward = func(namespace, pod string, _ int) (runpod.Dialer, error) {
		asked = append(asked, namespace+"/"+pod)
		return at, nil
	}
	s, err := f.reader.Open(t.Context(), newRun())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d, err := s.Ask(t.Context(), 5, true); err != nil || len(d.Steps) != 2 {
			t.Errorf("the answer is %+v, %v", d, err)
		}
	}
	pod := f.created[0]
	if len(f.created) != 1 || len(asked) != 1 || asked[0] != "default/"+pod.Name {
		t.Errorf("%d pods were created, and ports were forwarded of %v", len(f.created), asked)
	}
	args := strings.Join(pod.Spec.Containers[0].Args, " ")
	if !strings.HasSuffix(args, "--serve=127.0.0.1:8092") || *pod.Spec.ActiveDeadlineSeconds != 7200 {
		t.Errorf("the pod has the arguments %s and %d seconds", args, *pod.Spec.ActiveDeadlineSeconds)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.expectNoPod(t)
}

// TestSessionsThatCannotBe opens sessions with an image whose program ends at once, and for a person who may not
// forward ports.
func TestSessionsThatCannotBe(t *testing.T) {
	noPorts := apierrors.NewForbidden(schema.GroupResource{Resource: "pods/portforward"}, "reader", nil)
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		err    error
	}{
		"an old image": {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, errors.New("not reached")},
		"no ports":     {running, noPorts},
	} {
		f := newFixture(t, tc.change, "")
		f.reader.Forward = func(string, string, int) (runpod.Dialer, error) { return nil, tc.err }
		if _, err := f.reader.Open(t.Context(), newRun()); !errors.Is(err, runpod.ErrUnserved) {
			t.Errorf("%s: the error is %v", name, err)
		}
		f.expectNoPod(t)
	}
}
