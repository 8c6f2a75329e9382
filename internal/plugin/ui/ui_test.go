// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/site"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

func TestAddressesThatOthersReachNeedTLS(t *testing.T) {
	for name, tc := range map[string]struct {
		flags flags
		want  string
	}{
		"loopback":           {flags{listen: "127.0.0.1:0"}, ""},
		"loopback of IPv6":   {flags{listen: "[::1]:0"}, ""},
		"name of loopback":   {flags{listen: "localhost:8080"}, ""},
		"all addresses":      {flags{listen: "0.0.0.0:8080"}, "--tls-cert"},
		"no host":            {flags{listen: ":8080"}, "--tls-cert"},
		"another host":       {flags{listen: "10.1.2.3:8080"}, "--tls-cert"},
		"a name":             {flags{listen: "workstation:8080"}, "--tls-cert"},
		"no port":            {flags{listen: "127.0.0.1"}, "HOST:PORT"},
		"TLS":                {flags{listen: "0.0.0.0:8443", cert: "a", key: "b"}, ""},
		"certificate alone":  {flags{listen: "127.0.0.1:0", cert: "a"}, "both"},
		"key without a cert": {flags{listen: "0.0.0.0:0", key: "b"}, "both"},
	} {
		err := tc.flags.check()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}

// server is the command in progress.
type server struct {
	address string
	lines   *bufio.Scanner
	input   io.Writer
	stop    func() error
}

func start(t *testing.T, f flags) *server {
	t.Helper()
	cluster, err := uitest.New(t.Context(), interceptor.Funcs{})
	if err != nil {
		t.Fatal(err)
	}
	out, written := io.Pipe()
	typed, input := io.Pipe()
	env := cli.IO{Stdin: typed, Stdout: written, Stderr: io.Discard, Now: func() time.Time { return uitest.Now }}
	pages := site.New(site.Config{Connection: &cli.Connection{Client: cluster, Namespace: uitest.Namespace},
		Watcher: cluster, Namespace: uitest.Namespace, Read: uitest.Read, Pieces: uitest.Pieces, Now: env.Now})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	f.noBrowser = true
	go func() { ended <- f.run(ctx, env, pages) }()
	s := &server{lines: bufio.NewScanner(out), input: input, stop: func() error {
		cancel()
		return <-ended
	}}
	s.address = s.line(t)
	return s
}

func (s *server) line(t *testing.T) string {
	t.Helper()
	if !s.lines.Scan() {
		t.Fatal("the command prints no address")
	}
	return s.lines.Text()
}

// browser returns a client that keeps cookies.
func browser(t *testing.T, roots *x509.CertPool) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

func get(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

// TestServer opens the printed address as a browser does, and ends the command.
func TestServer(t *testing.T) {
	s := start(t, flags{listen: "127.0.0.1:0"})
	if !strings.HasPrefix(s.address, "http://127.0.0.1:") {
		t.Fatalf("the address is %s", s.address)
	}
	first := browser(t, nil)
	if code, page := get(t, first, s.address); code != http.StatusOK || !strings.Contains(page, uitest.Stuck) {
		t.Fatalf("the address answers %d:\n%s", code, page)
	}
	if code, _ := get(t, browser(t, nil), s.address); code != http.StatusUnauthorized {
		t.Errorf("another browser is answered with %d", code)
	}
	if _, err := io.WriteString(s.input, "\n"); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, browser(t, nil), s.line(t)); code != http.StatusOK {
		t.Errorf("the second address is answered with %d", code)
	}
	if err := s.stop(); err != nil {
		t.Errorf("the command ends with %v", err)
	}
}

// TestActionsComeFromThePages checks that a POST from another page is refused before anything is done.
func TestActionsComeFromThePages(t *testing.T) {
	s := start(t, flags{listen: "127.0.0.1:0"})
	c := browser(t, nil)
	get(t, c, s.address)
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	post := func(origin string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+u.Host+"/runs/research/"+uitest.Stuck+
			"/actions/suspend", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if code := post("http://evil.example"); code != http.StatusForbidden {
		t.Errorf("another page's action is answered with %d", code)
	}
	if code := post("http://" + u.Host); code != http.StatusOK {
		t.Errorf("the page's own action is answered with %d", code)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestServerOfTLS(t *testing.T) {
	cert, key, roots := certificate(t)
	s := start(t, flags{listen: "127.0.0.1:0", cert: cert, key: key})
	if !strings.HasPrefix(s.address, "https://workstation.example:") {
		t.Fatalf("the address is %s", s.address)
	}
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	c := browser(t, roots)
	transport, _ := c.Transport.(*http.Transport)
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+u.Port())
	}
	if code, page := get(t, c, s.address); code != http.StatusOK || !strings.Contains(page, uitest.Stuck) {
		t.Errorf("the address answers %d:\n%s", code, page)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := (flags{listen: "127.0.0.1:0", cert: key, key: cert}).open(t.Context()); err == nil {
		t.Error("a file that is no certificate is taken")
	}
}

// certificate writes a certificate of workstation.example with its key.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"workstation.example"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", encoded), roots
}
