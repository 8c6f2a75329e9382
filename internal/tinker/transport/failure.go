// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// CodeOf returns the code of a request to the endpoint's server that failed because client and server do not agree on
// TLS: one of them does not accept the other's certificate, or the server does not speak TLS. The code of any other
// failure is empty.
func CodeOf(err error) problem.Code {
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return codeOfCertificate(refused)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return problem.EndpointWithoutTLS
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "remote error" { // It is a TLS alert.
		return problem.EndpointRefusesTLS
	}
	return ""
}

// codeOfCertificate returns the code of a certificate of the endpoint's server that the client does not accept.
func codeOfCertificate(refused *tls.CertificateVerificationError) problem.Code {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](refused); ok {
		return problem.EndpointAuthorityUnknown
	}
	if _, ok := errors.AsType[x509.HostnameError](refused); ok {
		return problem.EndpointHostMismatch
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](refused); ok && invalid.Reason == x509.Expired {
		return problem.EndpointCertificateExpired
	}
	return problem.EndpointCertificateInvalid
}

// authorityUnknown maps the code of a failed request to a server other than the endpoint to the code that replaces it
// if the client does not trust the authority of the server's certificate.
var authorityUnknown = map[problem.Code]problem.Code{
	problem.DataBlocked: problem.DataAuthorityUnknown, problem.TokenizerBlocked: problem.DataAuthorityUnknown,
	problem.RowsBlocked: problem.DataAuthorityUnknown, problem.JudgeBlocked: problem.JudgeAuthorityUnknown,
	problem.ArtifactsBlocked: problem.ArtifactsAuthorityUnknown,
	problem.DataInvalid:      problem.EnvironmentAuthorityUnknown,
	problem.EnvironmentFault: problem.EnvironmentAuthorityUnknown,
	problem.JudgeFault:       problem.EnvironmentAuthorityUnknown,

	problem.EnvironmentUnavailable: problem.ServersAuthorityUnknown,
}

// Refine returns the code of a failed request to a server other than the endpoint. If the client does not trust the
// authority of the server's certificate, it returns a code whose repair is to add that authority; otherwise it
// returns the given code.
func Refine(code problem.Code, err error) problem.Code {
	_, failed := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	if refined, known := authorityUnknown[code]; known && failed && unknown {
		return refined
	}
	return code
}
