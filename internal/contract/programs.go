// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
)

// ProgramPort is the port on which the pods of programs serve workers.
const ProgramPort = 7445

// programServerName is the name that the certificates of such pods are issued for.
const programServerName = "program.tinker-operator"

// WarmPoolsDir is the folder in which workers have the certificates of warm pools, each in a folder with the name of
// the pool.
const WarmPoolsDir = "/var/run/tinker-operator/warm-pools"

// WarmPoolCertificate returns the file with the certificate of a warm pool in the pods of workers.
func WarmPoolCertificate(pool string) string {
	return path.Join(WarmPoolsDir, pool, ProgramCertificateKey)
}

// WarmPoolSecretName returns the name of the Secret with the certificate of a warm pool and its key. Its type is
// kubernetes.io/tls, and it is made by the user who makes the pool. The pods of the pool have both, and the workers
// of runs have only the certificate.
func WarmPoolSecretName(pool string) string { return pool + "-runner" }

// The keys of the Secret of the pods of a program.
const (
	ProgramCertificateKey = "tls.crt"
	ProgramPrivateKeyKey  = "tls.key"
	ProgramTokenKey       = "token.sha256"
)

// ProgramName returns the name of the Deployment and of the Service of a program in pods. prefix begins the names of
// the run's objects, and id is the program's.
func ProgramName(prefix, id string) string { return prefix + "-program-" + id[:8] }

// ProgramCredentials are the secrets between the workers of a run and the pods of one of its programs. They derive
// from the token of the workers, which the pods do not have, so that they give access to no other program and to no
// learner.
type ProgramCredentials struct {
	// Token authenticates workers, 64 hex digits. Pods only know its SHA-256.
	Token string
	// Certificate and PrivateKey are the key pair of the pods, in PEM.
	Certificate, PrivateKey []byte
}

// DeriveProgramCredentials derives the secrets of a program of a run from the token of the run's workers.
func DeriveProgramCredentials(token, id string) (ProgramCredentials, error) {
	if token == "" {
		return ProgramCredentials{}, errors.New("deriving the credentials of a program: the run has no token")
	}
	var secrets [2][]byte
	for i, name := range []string{"token", "tls"} {
		secret, err := hkdf.Key(sha256.New, []byte(token), nil, "tinker-operator program "+name+" "+id, ed25519.SeedSize)
		if err != nil {
			return ProgramCredentials{}, fmt.Errorf("deriving the credentials of a program: %s: %w", name, err)
		}
		secrets[i] = secret
	}
	certificate, key, err := certify(ed25519.NewKeyFromSeed(secrets[1]), programServerName, programServerName)
	if err != nil {
		return ProgramCredentials{}, err
	}
	return ProgramCredentials{Token: hex.EncodeToString(secrets[0]), Certificate: certificate, PrivateKey: key}, nil
}

// TokenSHA256 returns the SHA-256 of the token, in hex digits.
func (p ProgramCredentials) TokenSHA256() string {
	digest := sha256.Sum256([]byte(p.Token))
	return hex.EncodeToString(digest[:])
}

// ClientTLS returns a TLS configuration that trusts the certificate of the pods and no other, whatever their address
// is.
func (p ProgramCredentials) ClientTLS() (*tls.Config, error) { return ProgramTLS(p.Certificate) }

// ProgramTLS returns a TLS configuration that trusts a certificate of pods of programs, or the authority that has
// issued it, whatever the address of the pods is.
func ProgramTLS(certificate []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bytes.TrimSpace(certificate)) {
		return nil, errors.New("reading the certificate of a program: it has no PEM block")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: programServerName}, nil
}
