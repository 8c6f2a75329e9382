// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "private authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

// issue writes a certificate and its key to files.
func (a authority) issue(t *testing.T, name string) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", der), writePEM(t, "EC PRIVATE KEY", private)
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// refusals receives the log of a server about the connections that it refuses.
type refusals chan string

func (r refusals) Write(line []byte) (int, error) {
	r <- string(line)
	return len(line), nil
}

// newServer starts a server with a certificate of the authority. The server requires such a certificate of its clients.
func newServer(t *testing.T, a authority, refused refusals) *httptest.Server {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(a.issue(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.certificate)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName+" "+r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(refused, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: clients, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// newProxy starts a proxy that opens tunnels, and counts them.
func newProxy(t *testing.T, tunnels *atomic.Int64) *httptest.Server {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only tunnels", http.StatusMethodNotAllowed)
			return
		}
		server, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		client, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		// The server of the proxy may have read the beginning already.
		go func() { _, _ = io.Copy(server, buffered); server.Close() }()
		go func() { _, _ = io.Copy(client, server); client.Close() }()
	}))
	t.Cleanup(proxy.Close)
	return proxy
}

func get(t *testing.T, options Options, url string) (string, error) {
	t.Helper()
	transport, err := New(options)
	if err != nil {
		return "", err
	}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// TestMutualTLSThroughProxy connects through a proxy to a server of a private authority that requires a certificate.
func TestMutualTLSThroughProxy(t *testing.T) {
	private := newAuthority(t)
	refused := make(refusals, 10)
	server := newServer(t, private, refused)
	var tunnels atomic.Int64
	proxy := newProxy(t, &tunnels)
	caFile := writePEM(t, "CERTIFICATE", private.certificate.Raw)
	certificateFile, keyFile := private.issue(t, "learner")

	body, err := get(t, Options{ProxyURL: proxy.URL, CAFile: caFile, CertificateFile: certificateFile, KeyFile: keyFile},
		server.URL)
	if err != nil || body != "learner HTTP/2.0" {
		t.Errorf("body is %q, error %v", body, err)
	}
	if tunnels.Load() != 1 {
		t.Errorf("%d tunnels were opened, want 1", tunnels.Load())
	}
	if _, err := get(t, Options{CertificateFile: certificateFile, KeyFile: keyFile}, server.URL); err == nil ||
		!strings.Contains(err.Error(), "unknown authority") {
		t.Fatalf("without the authority the error is %v", err)
	}
	if line := <-refused; !strings.Contains(line, "bad certificate") {
		t.Errorf("the server reports %q of a client without the authority", line)
	}
	// In TLS 1.3 the server refuses after the client's handshake has ended, so that net/http may not report why.
	body, err = get(t, Options{CAFile: caFile}, server.URL)
	if err == nil || body != "" {
		t.Fatalf("without a certificate the body is %q, and the error %v, want a refused connection", body, err)
	}
	if line := <-refused; !strings.Contains(line, "client didn't provide a certificate") {
		t.Errorf("the server reports %q of a client without a certificate", line)
	}
}

// TestRenewedCertificate replaces the files of a certificate, as Kubernetes does: the next connection has the new one.
func TestRenewedCertificate(t *testing.T) {
	private := newAuthority(t)
	server := newServer(t, private, make(refusals, 10))
	certificateFile, keyFile := private.issue(t, "old")
	transport, err := New(Options{CAFile: writePEM(t, "CERTIFICATE", private.certificate.Raw),
		CertificateFile: certificateFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old", "new"} {
		response, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if !strings.HasPrefix(string(body), want) {
			t.Errorf("server saw the certificate of %q, want %q", body, want)
		}
		transport.CloseIdleConnections()
		renewed, renewedKey := private.issue(t, "new")
		for from, to := range map[string]string{renewed: certificateFile, renewedKey: keyFile} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	private := newAuthority(t)
	certificateFile, keyFile := private.issue(t, "learner")
	noPEM := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(noPEM, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]Options{
		"tinker.proxyURL":                   {ProxyURL: "proxy:3128:x"},
		"there is no certificate in PEM":    {CAFile: noPEM},
		"tinker.caBundleConfigMapKeyRef":    {CAFile: "/missing"},
		"tinker.clientCertificateSecretRef": {CertificateFile: keyFile, KeyFile: certificateFile},
	} {
		if _, err := New(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that names %s", err, want)
		}
	}
}
