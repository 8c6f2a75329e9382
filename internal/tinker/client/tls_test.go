// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestCodesOfTLS connects to servers with which the client does not agree on TLS: the code of each failure names its
// repair.
func TestCodesOfTLS(t *testing.T) {
	trust := func(server *httptest.Server, config *tls.Config) {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(server.Certificate())
	}
	cases := map[string]struct {
		// url changes the address of the server.
		url    func(string) string
		server func(*tls.Config)
		client func(*httptest.Server, *tls.Config)
		want   problem.Code
	}{
		"a private authority": {client: func(*httptest.Server, *tls.Config) {}, want: "EndpointAuthorityUnknown"},
		"another host": {client: trust, want: "EndpointHostMismatch",
			url: func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }},
		"an expired certificate": {want: "EndpointCertificateExpired",
			client: func(server *httptest.Server, config *tls.Config) {
				trust(server, config)
				config.Time = func() time.Time { return server.Certificate().NotAfter.Add(time.Hour) }
			}},
		"a certificate of a client alone": {want: "EndpointCertificateInvalid",
			client: func(server *httptest.Server, config *tls.Config) {
				// VerifyConnection checks the usage itself, and fails as crypto/tls does if a server presents the certificate of a
				// client.
				config.InsecureSkipVerify = true
				config.VerifyConnection = func(state tls.ConnectionState) error {
					roots := x509.NewCertPool()
					roots.AddCert(server.Certificate())
					_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots,
						KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}})
					return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
				}
			}},
		"a client without a certificate": {client: trust, want: "EndpointRefusesTLS",
			server: func(config *tls.Config) { config.ClientAuth = tls.RequireAnyClientCert }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(new(strings.Builder), "", 0)
			server.TLS = &tls.Config{}
			if tc.server != nil {
				tc.server(server.TLS)
			}
			server.StartTLS()
			defer server.Close()
			config, url := &tls.Config{}, server.URL
			tc.client(server, config)
			if tc.url != nil {
				url = tc.url(url)
			}
			if got, err := connectTo(t, url, config); got != tc.want {
				t.Errorf("the client fails with %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

// connectTo returns the code of the failure of a client that connects to a server, and the error.
func connectTo(t *testing.T, url string, config *tls.Config) (problem.Code, error) {
	t.Helper()
	c, err := New(Config{BaseURL: url, APIKey: "tml-key",
		HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: config}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.Capabilities(ctx)
	return FailsOf(err), err
}

// TestCodesOfServersWithoutTLS connects with TLS to a server that does not use it, and without TLS to a server that
// requires it.
func TestCodesOfServersWithoutTLS(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if got, err := connectTo(t, strings.Replace(plain.URL, "http:", "https:", 1), &tls.Config{}); got !=
		"EndpointWithoutTLS" {
		t.Errorf("the client fails with %s (%v), want EndpointWithoutTLS", got, err)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(new(strings.Builder), "", 0)
	secure.StartTLS()
	defer secure.Close()
	if got, err := connectTo(t, strings.Replace(secure.URL, "https:", "http:", 1), nil); got !=
		problem.EndpointNotTinker {
		t.Errorf("the client fails with %s (%v), want %s", got, err, problem.EndpointNotTinker)
	}
}

// TestCodeOfACertificateThatExpires makes a call after the server's certificate has expired: the call is tried again,
// and the code of the failure is reported.
func TestCodeOfACertificateThatExpires(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	server.Config.ErrorLog = log.New(new(strings.Builder), "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	expired := false
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots,
		Time: func() time.Time {
			if expired {
				return server.Certificate().NotAfter.Add(time.Hour)
			}
			return time.Now()
		}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	problems := Problems{Lasts: time.Hour}
	c, err := New(Config{BaseURL: server.URL, APIKey: "tml-key", HTTP: &http.Client{Transport: transport},
		Observe: func(e Event) {
			problems.Observe(e, time.Now())
			cancel()
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	expired = true
	if _, err := c.WeightsInfo(ctx, "p"); err == nil {
		t.Fatal("the server answers")
	}
	if found, any := problems.Newest(time.Now()); !any || found.Code != "EndpointCertificateExpired" ||
		!strings.Contains(found.Evidence, "expired") {
		t.Errorf("the problem is %+v (%v), want EndpointCertificateExpired", found, any)
	}
}
