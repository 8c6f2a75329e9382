// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// These are the keys of the credentials Secret and the names of its files in a pod.
const (
	TokenKey        = "token"
	ManagerTokenKey = "manager-token"
	CertificateKey  = "tls.crt"
	PrivateKeyKey   = "tls.key"
)

// LearnerServerName is the name that the certificate is issued for.
const LearnerServerName = "learner.tinker-operator"

// Credentials is the secrets of one run.
type Credentials struct {
	// Token authorises workers to exchange groups with the learner, 64 hex digits.
	Token string
	// ManagerToken authorises the manager to direct the learner and to read its metrics, 64 hex digits. It is empty at
	// workers, and at learners whose Secret was written by an earlier version of the manager: at such a learner Token
	// authorises both.
	ManagerToken string
	// Certificate and PrivateKey are the learner's key pair, in PEM. Workers have only the certificate.
	Certificate, PrivateKey []byte
}

// ReadCredentials reads the credentials of a run from the folder of its Secret. The private key and the manager's
// token are empty if the folder does not have them, as at workers.
func ReadCredentials(dir string) (Credentials, error) {
	contents := map[string][]byte{}
	for _, key := range []string{TokenKey, ManagerTokenKey, CertificateKey, PrivateKeyKey} {
		data, err := os.ReadFile(filepath.Join(dir, key))
		if optional := key == PrivateKeyKey || key == ManagerTokenKey; err != nil &&
			(!optional || !errors.Is(err, fs.ErrNotExist)) {
			return Credentials{}, fmt.Errorf("reading credentials: %w", err)
		}
		contents[key] = data
	}
	return Credentials{
		Token:        strings.TrimSpace(string(contents[TokenKey])),
		ManagerToken: strings.TrimSpace(string(contents[ManagerTokenKey])),
		Certificate:  contents[CertificateKey], PrivateKey: contents[PrivateKeyKey],
	}, nil
}

// DeriveCredentials returns the credentials of a run. managerKey has at least 32 bytes.
func DeriveCredentials(managerKey []byte, runUID string) (Credentials, error) {
	if len(managerKey) < 32 {
		return Credentials{}, fmt.Errorf("deriving credentials: the manager key has %d bytes, 32 are needed", len(managerKey))
	}
	secrets := map[string][]byte{"token": nil, "manager token": nil, "tls": nil}
	for name := range secrets {
		secret, err := hkdf.Key(sha256.New, managerKey, nil, "tinker-operator "+name+" "+runUID, ed25519.SeedSize)
		if err != nil {
			return Credentials{}, fmt.Errorf("deriving credentials: %s: %w", name, err)
		}
		secrets[name] = secret
	}
	certificate, key, err := certify(ed25519.NewKeyFromSeed(secrets["tls"]), LearnerServerName, LearnerServerName)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{
		Token: hex.EncodeToString(secrets["token"]), ManagerToken: hex.EncodeToString(secrets["manager token"]),
		Certificate: certificate, PrivateKey: key,
	}, nil
}

// SecretSuffix returns 8 hex digits that depend on the manager key and on the run. They are part of the name of a
// Secret: the manager can only create Secrets, never read or change them, so a new key needs a new Secret.
func SecretSuffix(managerKey []byte, runUID string) string {
	mac := hmac.New(sha256.New, managerKey)
	mac.Write([]byte("tinker-operator name " + runUID))
	return hex.EncodeToString(mac.Sum(nil))[:8]
}

// certify makes the self-signed certificate of a server with the given host names. Ed25519 signatures are
// deterministic and nothing here depends on the clock, so the same key gives the same bytes.
func certify(key ed25519.PrivateKey, name string, hosts ...string) (certificate, private []byte, err error) {
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              hosts,
		NotBefore:             time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding TLS key: %w", err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	return certificate, private, nil
}

// ServerTLS returns the TLS configuration of the learner.
func (l Credentials) ServerTLS() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(l.Certificate, l.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("reading the learner's key pair: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}, nil
}

// ClientTLS returns a TLS configuration that trusts this run's certificate and no other, whatever the learner's
// address is.
func (l Credentials) ClientTLS() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bytes.TrimSpace(l.Certificate)) {
		return nil, errors.New("reading the learner's certificate: no PEM block in " + CertificateKey)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: LearnerServerName}, nil
}

// Authorizes reports whether a token is the token of the run's workers, in constant time.
func (l Credentials) Authorizes(token string) bool {
	return l.Token != "" && subtle.ConstantTimeCompare([]byte(l.Token), []byte(token)) == 1
}

// AuthorizesManager reports whether a token is the manager's, in constant time.
func (l Credentials) AuthorizesManager(token string) bool {
	if l.ManagerToken == "" {
		return l.Authorizes(token)
	}
	return subtle.ConstantTimeCompare([]byte(l.ManagerToken), []byte(token)) == 1
}

// attemptMessage is the message that a learner signs to prove its attempt.
func attemptMessage(runUID string, attempt int32) []byte {
	return fmt.Appendf(nil, "tinker-operator attempt %d of %s", attempt, runUID)
}

// ProveAttempt returns the signature that proves to the learners of earlier attempts that this learner's attempt has
// begun. Workers pass it on but cannot make it, since they lack the private key.
func (l Credentials) ProveAttempt(runUID string, attempt int32) ([]byte, error) {
	block, _ := pem.Decode(l.PrivateKey)
	if block == nil {
		return nil, errors.New("proving the attempt: no PEM block in " + PrivateKeyKey)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("proving the attempt: %w", err)
	}
	signer, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("proving the attempt: %s is a %T, not an Ed25519 key", PrivateKeyKey, key)
	}
	return ed25519.Sign(signer, attemptMessage(runUID, attempt)), nil
}

// ProvesAttempt reports whether a learner of the run signed for the attempt.
func (l Credentials) ProvesAttempt(runUID string, attempt int32, signature []byte) bool {
	block, _ := pem.Decode(l.Certificate)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	key, ok := certificate.PublicKey.(ed25519.PublicKey)
	return ok && ed25519.Verify(key, attemptMessage(runUID, attempt), signature)
}
