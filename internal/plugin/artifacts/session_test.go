// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

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

// newAPIServer forwards the port of any pod to an address, as the API server and the kubelet do.
func newAPIServer(t *testing.T, address string) (*rest.Config, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 16)
		keep := func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		}
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, keep)
		if connection == nil {
			return
		}
		var failures httpstream.Stream
		for {
			select {
			case s := <-streams:
				if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
					failures = s
					continue
				}
				go pipe(s, failures, address)
			case <-connection.CloseChan():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, &asked
}

// pipe connects a stream with an address, and says on the other stream that nothing listens there.
func pipe(s, failures httpstream.Stream, address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		_, _ = io.WriteString(failures, err.Error())
		_ = failures.Close()
		return
	}
	_ = failures.Close()
	go func() { _, _ = io.Copy(c, s) }()
	_, _ = io.Copy(s, c)
	_ = s.Close()
	_ = c.Close()
}

// running has the pods of a fixture run.
func running(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }

func newForward(t *testing.T, config *rest.Config) func(namespace, pod string, port int) (dialer, error) {
	t.Helper()
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return func(namespace, pod string, port int) (dialer, error) {
		return forward(config, core.RESTClient(), namespace, pod, port)
	}
}

// TestSession asks a pod several questions over a forwarded port, and deletes it.
func TestSession(t *testing.T) {
	config, asked := newAPIServer(t, newServer(t).Listener.Addr().String())
	f := newFixture(t, running, "")
	f.reader.forward = newForward(t, config)
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
	if len(f.created) != 1 || len(*asked) != 1 ||
		(*asked)[0] != "POST /api/v1/namespaces/default/pods/"+pod.Name+"/portforward" {
		t.Errorf("%d pods were created, and the API server was asked %v", len(f.created), *asked)
	}
	args := strings.Join(pod.Spec.Containers[0].Args, " ")
	if !strings.HasSuffix(args, "--serve=127.0.0.1:8092") || *pod.Spec.ActiveDeadlineSeconds != 7200 {
		t.Errorf("the pod has the arguments %s and %d seconds", args, *pod.Spec.ActiveDeadlineSeconds)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.expectNoPod(t)
	if _, err := s.Ask(t.Context(), 5, true); err == nil {
		t.Error("a session that is closed answers")
	}
}

// TestTunnelToAPortWhereNothingListens ends in place of waiting.
func TestTunnelToAPortWhereNothingListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	config, _ := newAPIServer(t, address)
	opened, err := newForward(t, config)("default", "reader", sessionPort)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	c, err := opened.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(c)
		done <- string(data)
	}()
	select {
	case data := <-done:
		if data != "" {
			t.Errorf("the connection has %q", data)
		}
	case <-time.After(10 * time.Second):
		t.Error("the connection does not end")
	}
}

// TestSessionsThatCannotBe is of an image whose program ends at once, and of a person who may not forward ports.
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
		f.reader.forward = func(string, string, int) (dialer, error) { return nil, tc.err }
		if _, err := f.reader.Open(t.Context(), newRun()); !errors.Is(err, ErrUnserved) {
			t.Errorf("%s: the error is %v", name, err)
		}
		f.expectNoPod(t)
	}
}
