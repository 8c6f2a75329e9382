// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import "testing"

func TestIsLocal(t *testing.T) {
	for address, want := range map[string]bool{
		"http://localhost:1": true, "http://127.0.0.1:8080": true, "http://[::1]:1": true,
		"https://example.com": false, "http://localhost.example.com": false, "http://10.0.0.1": false,
	} {
		if got := isLocal(address); got != want {
			t.Errorf("isLocal(%s) = %v, want %v", address, got, want)
		}
	}
}
