// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// tokenPrefix begins every credential that the official SDK accepts.
const tokenPrefix = "tml-"

// DeriveEndpointKey returns the key from which the tokens of runs at one TinkerEndpoint are derived. The broker of the
// endpoint has this key; the manager key cannot be computed from it. managerKey has at least 32 bytes.
func DeriveEndpointKey(managerKey []byte, endpoint string) ([]byte, error) {
	if len(managerKey) < 32 {
		return nil, fmt.Errorf("deriving endpoint key: the manager key has %d bytes, 32 are needed", len(managerKey))
	}
	key, err := hkdf.Key(sha256.New, managerKey, nil, "tinker-operator endpoint "+endpoint, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("deriving endpoint key: %w", err)
	}
	return key, nil
}

// DeriveBrokerCertificate returns the key pair of the broker of an endpoint, in PEM. The certificate is also the
// authority that runs trust. managerKey has at least 32 bytes, and hosts are the names by which runs reach the broker.
func DeriveBrokerCertificate(managerKey []byte, endpoint string, hosts ...string) (certificate, key []byte, err error) {
	if len(managerKey) < 32 {
		return nil, nil, fmt.Errorf("deriving broker certificate: the manager key has %d bytes, 32 are needed",
			len(managerKey))
	}
	seed, err := hkdf.Key(sha256.New, managerKey, nil, "tinker-operator broker "+endpoint, ed25519.SeedSize)
	if err != nil {
		return nil, nil, fmt.Errorf("deriving broker certificate: %w", err)
	}
	return certify(ed25519.NewKeyFromSeed(seed), "tinker-endpoint-"+endpoint, hosts...)
}

// RunToken returns the credential of a run at the broker of an endpoint.
func RunToken(endpointKey []byte, runUID string) string {
	mac := hmac.New(sha256.New, endpointKey)
	mac.Write([]byte("tinker-operator run " + runUID))
	return tokenPrefix + hex.EncodeToString(mac.Sum(nil))
}
