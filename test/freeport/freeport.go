// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeport gives addresses to programs that tests start.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// The ports lie below those that the kernel gives to listeners of port 0 and to connections (from 32768 on), so that
// none of these takes one before its program listens.
const first, count = 20000, 12000

var next atomic.Uint32

func init() { next.Store(rand.Uint32N(count)) }

// Address returns a loopback address at which nothing listens, another one at each call.
func Address(t testing.TB) string {
	t.Helper()
	for range count {
		address := fmt.Sprintf("127.0.0.1:%d", first+next.Add(1)%count)
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no port is free")
	return ""
}
