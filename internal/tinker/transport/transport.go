// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport connects to servers of the Tinker API: through a proxy, with a private authority, and with a client
// certificate if the server requires one.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// The environment variables by which pods learn how to connect.
const (
	// ProxyVariable is the URL of a proxy.
	ProxyVariable = "TINKER_PROXY_URL"
	// CAVariable is a file with certificates of authorities, in PEM.
	CAVariable = "TINKER_CA_FILE"
	// CertificateVariable and KeyVariable are the files of a client certificate and of its key, in PEM.
	CertificateVariable = "TINKER_CLIENT_CERTIFICATE_FILE"
	KeyVariable         = "TINKER_CLIENT_KEY_FILE"
)

// Options say how to connect. The zero value uses the proxy of the environment and the authorities of the system.
type Options struct {
	// ProxyURL is the URL of an HTTP, HTTPS or SOCKS5 proxy.
	ProxyURL string
	// CAFile has authorities that are trusted in addition to the system's.
	CAFile string
	// CertificateFile and KeyFile are the files of the client certificate; they are read again for each connection.
	CertificateFile, KeyFile string
}

// FromEnvironment returns the options that the environment variables give.
func FromEnvironment(getenv func(string) string) Options {
	return Options{
		ProxyURL: getenv(ProxyVariable), CAFile: getenv(CAVariable),
		CertificateFile: getenv(CertificateVariable), KeyFile: getenv(KeyVariable),
	}
}

// New returns a transport for thousands of idle long polls. Over TLS they are streams of a few HTTP/2
// connections, and pings detect dead ones; over plain HTTP each has a connection, which is kept for reuse.
func New(options Options) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		Proxy:               proxyFromEnvironment,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if options.ProxyURL != "" {
		proxy, err := url.Parse(options.ProxyURL)
		if err != nil || proxy.Host == "" {
			return nil, fmt.Errorf("parsing tinker.proxyURL: it is not the URL of a proxy")
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	var err error
	t.TLSClientConfig, err = options.tlsConfig()
	return t, err
}

// proxyFromEnvironment returns the proxy of the environment variables. It returns none for a Service of the cluster,
// such as a broker, since a proxy to the outside does not reach it.
func proxyFromEnvironment(request *http.Request) (*url.URL, error) {
	if strings.HasSuffix(request.URL.Hostname(), ".svc") {
		return nil, nil //nolint:nilnil // No proxy is no error.
	}
	return http.ProxyFromEnvironment(request)
}

// tlsConfig returns nil if nothing differs from the defaults.
func (o Options) tlsConfig() (*tls.Config, error) {
	if o.CAFile == "" && o.CertificateFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		bundle, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of tinker.caBundleConfigMapKeyRef: %w", err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("reading the authorities of tinker.caBundleConfigMapKeyRef: there is no certificate in PEM")
		}
	}
	if o.CertificateFile != "" {
		load := func() (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(o.CertificateFile, o.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("reading the certificate of tinker.clientCertificateSecretRef: %w", err)
			}
			return &certificate, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}
