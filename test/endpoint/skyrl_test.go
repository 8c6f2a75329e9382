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
	url := skyrl.Start(t, filepath.Join("..", ".."), "127.0.0.1:18301").URL
	checkLateSamples(t, url)
	compareWithSkyRL(t, url)
}
