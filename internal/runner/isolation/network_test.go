// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation

import "testing"

func TestReleases(t *testing.T) {
	for release, want := range map[string]bool{
		"5.9": true, "5.9.0-rc1": true, "5.10-amd64": true, "6.1.0-18-cloud": true, "5.8.12": false, "4.19": false,
		"4.4.0": false, "": false, "six": false, "6.x": false,
	} {
		if got := isAtLeast(release, 5, 9); got != want {
			t.Errorf("isAtLeast(%q, 5, 9) = %v, want %v", release, got, want)
		}
	}
}
