// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net"
	"net/http"
	"time"
)

// newTransport returns a transport for thousands of idle long polls. Over TLS they are streams of a few HTTP/2
// connections, and pings detect dead ones; over plain HTTP each has a connection, which is kept for reuse.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}
