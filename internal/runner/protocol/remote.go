// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// The environment variables of a runner that serves callers over TCP. The runner removes them from its environment
// before it starts a program.
const (
	CertificateVariable = "RUNNER_TLS_CERTIFICATE"
	KeyVariable         = "RUNNER_TLS_KEY"
	TokenVariable       = "RUNNER_TOKEN_SHA256"
)
