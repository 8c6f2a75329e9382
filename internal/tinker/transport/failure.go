// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// IsTLSFailure reports whether a request failed because client and server do not agree on TLS: one of them does not
// accept the other's certificate, or the server does not speak TLS.
func IsTLSFailure(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "remote error" // It is a TLS alert.
}
