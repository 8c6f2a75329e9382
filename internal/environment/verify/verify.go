// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify scores replies by rules. It asks no model and no server, so the score of a reply is always the same.
package verify

import "github.com/tinker-operator/tinker-operator/internal/environment"

// Score tells what a reply is worth.
type Score struct {
	Reward float64
	// Metrics are averaged over episodes, by name.
	Metrics map[string]float64
}

// Verifier compares replies with answers. It is safe for concurrent use.
type Verifier interface {
	// Verify scores the reply to a question with this answer.
	Verify(answer string, reply environment.Reply) Score
	// Wrong returns the text of a reply that is worth less than the answer itself, for checks of an environment.
	Wrong(answer string) string
}
