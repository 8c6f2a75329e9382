// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build skyrl

package main

import (
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/test/skyrl"
)

// TestSkyRL checks late samples and every feature at SkyRL itself.
func TestSkyRL(t *testing.T) {
	url := skyrl.Start(t, filepath.Join("..", ".."), skyrl.Pinned, "127.0.0.1:18301").URL
	checkLateSamples(t, url, true)
	compareWithSkyRL(t, url, skyrl.Pinned.Version)
}

// TestSkyRLNext checks late samples and every feature at the next version of SkyRL.
func TestSkyRLNext(t *testing.T) {
	url := skyrl.Start(t, filepath.Join("..", ".."), skyrl.Next, "127.0.0.1:18302").URL
	checkLateSamples(t, url, false)
	compareWithSkyRL(t, url, skyrl.Next.Version)
}
