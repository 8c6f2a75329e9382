// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestRunTokensDifferByManagerEndpointAndRun(t *testing.T) {
	token := func(manager byte, endpoint, run string) string {
		t.Helper()
		key, err := contract.DeriveEndpointKey(bytes.Repeat([]byte{manager}, 32), endpoint)
		if err != nil {
			t.Fatal(err)
		}
		return contract.RunToken(key, run)
	}
	want := token(1, "shared", "run")
	if !strings.HasPrefix(want, "tml-") || len(want) != len("tml-")+64 {
		t.Errorf("token = %q, want tml- and 64 hex digits", want)
	}
	if got := token(1, "shared", "run"); got != want {
		t.Errorf("a second derivation = %s, want %s", got, want)
	}
	for name, got := range map[string]string{
		"manager key": token(2, "shared", "run"), "endpoint": token(1, "other", "run"), "run": token(1, "shared", "other"),
	} {
		if got == want {
			t.Errorf("another %s has the same token", name)
		}
	}
}

func TestEndpointKeyOfAShortManagerKeyIsRefused(t *testing.T) {
	if _, err := contract.DeriveEndpointKey(make([]byte, 31), "shared"); err == nil {
		t.Error("a manager key of 31 bytes is accepted, want an error")
	}
}

// TestBrokerCertificate connects a client that trusts only the certificate to the broker by each of its names.
func TestBrokerCertificate(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	hosts := []string{"tinker-endpoint-prod.operator.svc", "tinker-endpoint-prod.operator.svc.cluster.local"}
	certificate, private, err := contract.DeriveBrokerCertificate(key, "prod", hosts...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(certificate, private); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	for host, ok := range map[string]bool{hosts[0]: true, hosts[1]: true, "tinker-endpoint-other.operator.svc": false} {
		if _, err := parsed.Verify(x509.VerifyOptions{DNSName: host, Roots: trusted}); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
	again, _, err := contract.DeriveBrokerCertificate(key, "prod", hosts...)
	if err != nil || !bytes.Equal(again, certificate) {
		t.Errorf("a second derivation differs (%v)", err)
	}
	other, _, err := contract.DeriveBrokerCertificate(key, "dev", hosts...)
	if err != nil || bytes.Equal(other, certificate) {
		t.Errorf("another endpoint has the same certificate (%v)", err)
	}
	if _, _, err := contract.DeriveBrokerCertificate(key[:31], "prod", hosts...); err == nil {
		t.Error("a short manager key is accepted")
	}
}
