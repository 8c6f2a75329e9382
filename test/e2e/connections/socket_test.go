// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package connections

import (
	"bytes"
	"net/netip"
	"testing"
)

func TestParse(t *testing.T) {
	packet := make([]byte, 44)
	packet[0] = 0x46 // six words of header, one of which has options
	copy(packet[12:], []byte{10, 88, 0, 7, 10, 88, 0, 9})
	copy(packet[24:], []byte{0xc0, 0x01, 0x1d, 0x13})
	found, ok := parse(packet)
	want := opened{from: netip.MustParseAddr("10.88.0.7"), to: netip.MustParseAddr("10.88.0.9"), port: 7443}
	if !ok || found != want {
		t.Errorf("parse returns %v and %t, want %v", found, ok, want)
	}
	for _, size := range []int{0, 19, 27} {
		if found, ok := parse(bytes.Clone(packet[:size])); ok {
			t.Errorf("parse of %d bytes returns %v", size, found)
		}
	}
}
