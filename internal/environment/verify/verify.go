// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify says what a reply is worth by rules alone. It asks no model and no server, so its verdict
// on the same reply is always the same.
package verify

import "github.com/tinker-operator/tinker-operator/internal/environment"

// Verdict is what a reply is worth.
type Verdict struct {
	Reward float64
	// Metrics by name, to be averaged over episodes.
	Metrics map[string]float64
}

// Verifier compares replies with answers. It is safe for concurrent use.
type Verifier interface {
	// Verify says what the reply is worth where answer is the right one.
	Verify(answer string, reply environment.Reply) Verdict
	// Wrong gives a reply's text that is worth less than the answer itself, for checks.
	Wrong(answer string) string
}
