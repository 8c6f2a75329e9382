// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package runpod

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// TestTunnel asks a server over a forwarded port several times, until the tunnel is closed.
func TestTunnel(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	config, asked := newAPIServer(t, server.Listener.Addr().String())
	opened, err := newForward(t, config)("default", "reader", sessionPort)
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{tunnel: opened}
	get := func() error {
		answer, err := (&http.Client{Transport: s.Transport()}).Get("http://any/")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	for range 3 {
		if err := get(); err != nil {
			t.Error(err)
		}
	}
	if len(*asked) != 1 || (*asked)[0] != "POST /api/v1/namespaces/default/pods/reader/portforward" {
		t.Errorf("the API server was asked %v", *asked)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	if get() == nil {
		t.Error("a tunnel that is closed has connections")
	}
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

// pipe connects a stream with an address. If nothing listens there, it says so on the other stream.
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

func newForward(t *testing.T, config *rest.Config) func(namespace, pod string, port int) (Dialer, error) {
	t.Helper()
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return func(namespace, pod string, port int) (Dialer, error) {
		return forward(config, core.RESTClient(), namespace, pod, port)
	}
}

// TestTunnelToAPortWhereNothingListens checks that the connection ends instead of waiting.
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
	case <-time.After(5 * time.Minute):
		t.Error("the connection does not end")
	}
}
