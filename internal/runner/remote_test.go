// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"net"
	"testing"
)

// between is a connection between two addresses.
type between struct {
	net.Conn
	here, there string
}

func (b between) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.ParseIP(b.here)} }
func (b between) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(b.there)} }

// TestStrangers checks that connections from the runner's own machine are recognised, whatever their address, and that
// they count towards a limit until they have shown the token or have ended.
func TestStrangers(t *testing.T) {
	for conn, want := range map[between]bool{
		{here: "10.0.0.7", there: "10.0.0.7"}:   true,
		{here: "10.0.0.7", there: "10.0.0.8"}:   false,
		{here: "127.0.0.1", there: "127.0.0.1"}: true,
		{here: "127.0.0.1", there: "127.0.0.9"}: true,
		{here: "::1", there: "::1"}:             true,
		{here: "fd00::7", there: "fd00::8"}:     false,
	} {
		if got := isInside(conn); got != want {
			t.Errorf("from %s to %s: inside %v, want %v", conn.there, conn.here, got, want)
		}
	}
	var s strangers
	var last *connection
	for range maxStrangers {
		if last = (&connection{}); !s.add(last) {
			t.Fatal("a connection is refused below the limit")
		}
	}
	if s.add(&connection{}) {
		t.Error("a connection above the limit is admitted")
	}
	s.remove(last)
	if !s.add(&connection{}) {
		t.Error("a connection is refused after another has ended")
	}
}
