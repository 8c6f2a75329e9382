// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"runtime"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// heap returns the bytes in use after everything that is unreachable was collected.
func heap() uint64 {
	for range 3 { // pools give their content up in the second collection
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestClosedServersLeaveNoMemory checks that the heap returns to its first size after servers are closed, even while
// something still refers to them.
func TestClosedServersLeaveNoMemory(t *testing.T) {
	const servers, allowed = 50, 8 << 20
	kept := make([]*tinkersim.Server, 0, servers)
	work := func(t *testing.T) {
		b, session, model := startTrained(t, tinkersim.Options{})
		sampler := b.samplingSession(session, model, 0)
		b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 2, 9)))
		kept = append(kept, b.sim)
	}
	t.Run("first", work) // makes the values that all servers share
	before := heap()
	for range servers {
		t.Run("server", work)
	}
	after := heap()
	t.Logf("%d bytes before, %d after %d servers", before, after, servers)
	if after > before+allowed {
		t.Errorf("each of %d closed servers leaves %d KiB", servers, (after-before)/servers/1024)
	}
	runtime.KeepAlive(kept)
}
