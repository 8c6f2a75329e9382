// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"testing"
)

// TestProgramCredentialsAreApart derives the secrets of programs of runs. They are the same each time, and differ
// between programs and runs.
func TestProgramCredentialsAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, token := range []string{"a run's", "another run's"} {
		for _, id := range []string{"0123456789abcdef", "fedcba9876543210"} {
			made, err := DeriveProgramCredentials(token, id)
			if err != nil {
				t.Fatal(err)
			}
			again, err := DeriveProgramCredentials(token, id)
			if err != nil || again.Token != made.Token || !bytes.Equal(again.Certificate, made.Certificate) ||
				!bytes.Equal(again.PrivateKey, made.PrivateKey) {
				t.Errorf("the secrets of %s of %s differ the second time, or: %v", id, token, err)
			}
			for _, secret := range []string{made.Token, string(made.Certificate), string(made.PrivateKey), made.TokenSHA256()} {
				if secret == "" || seen[secret] {
					t.Errorf("a secret of %s of %s is empty or another program's: %q", id, token, secret)
				}
				seen[secret] = true
			}
		}
	}
	if _, err := DeriveProgramCredentials("", "0123456789abcdef"); err == nil {
		t.Error("a run without a token has secrets of programs")
	}
}
