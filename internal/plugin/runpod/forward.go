// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package runpod

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel makes connections to a port of a pod over one connection to the API server. It opens no port of this
// machine, which other users of the machine could reach.
type tunnel struct {
	streams httpstream.Connection
	port    string

	mu     sync.Mutex
	next   int
	closed bool
}

// forward connects to a port of a pod through the API server, as kubectl port-forward does.
func forward(config *rest.Config, core rest.Interface, namespace, pod string, port int) (*tunnel, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	address := core.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").
		VersionedParams(&corev1.PodPortForwardOptions{}, scheme.ParameterCodec).URL()
	asking := &http.Client{Transport: transport, Timeout: dialPatience}
	streams, _, err := spdy.NewDialerForStreaming(upgrader, asking, http.MethodPost, address).
		Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port of pod %q: %w", pod, err)
	}
	return &tunnel{streams: streams, port: strconv.Itoa(port)}, nil
}

// dialPatience bounds the request that becomes the connection.
const dialPatience = 30 * time.Second

// Dial returns a connection to the port.
func (t *tunnel) Dial() (net.Conn, error) {
	if t.isClosed() {
		return nil, net.ErrClosed // Creating a stream would block if the connection has ended.
	}
	t.mu.Lock()
	t.next++
	headers := http.Header{corev1.PortHeader: {t.port}, corev1.PortForwardRequestIDHeader: {strconv.Itoa(t.next)}}
	t.mu.Unlock()
	create := func(kind string) (httpstream.Stream, error) {
		own := headers.Clone()
		own.Set(corev1.StreamType, kind)
		return t.streams.CreateStream(own)
	}
	failures, err := create(corev1.StreamTypeError)
	if err != nil {
		return nil, fmt.Errorf("opening a stream of errors: %w", err)
	}
	_ = failures.Close() // Nothing is written to it.
	data, err := create(corev1.StreamTypeData)
	if err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	c := &streamConn{Stream: data, forget: func() { t.streams.RemoveStreams(failures, data) }}
	go func() {
		// The kubelet says here that nothing listens at the port, and keeps the stream of data open.
		if message, err := io.ReadAll(failures); err == nil && len(message) > 0 {
			_ = data.Reset()
		}
	}()
	return c, nil
}

// isClosed reports whether the connection to the API server has ended.
func (t *tunnel) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.streams.CloseChan():
		return true
	default:
		return t.closed
	}
}

// Close ends all connections.
func (t *tunnel) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.streams.Close()
}

// streamConn is a stream as a net.Conn. It has no deadlines: the context of a request bounds it.
type streamConn struct {
	httpstream.Stream

	forget func()
	once   sync.Once
}

// Close implements net.Conn.
func (c *streamConn) Close() error {
	var err error
	c.once.Do(func() {
		err = c.Reset()
		c.forget()
	})
	return err
}

// LocalAddr implements net.Conn.
func (*streamConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (*streamConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (*streamConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (*streamConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (*streamConn) SetWriteDeadline(time.Time) error { return nil }
