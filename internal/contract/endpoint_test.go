// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"bytes"
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
		t.Errorf("a second derivation gives %s, want %s", got, want)
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
