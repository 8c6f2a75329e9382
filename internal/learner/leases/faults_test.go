// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestFaults(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0, 1, 2, 3))
	hello(t, f, "w", exchange.HelloRequest{})
	slots(f, "w", 64)
	fine, left, late := group(0, 4), group(1, 4), group(2, 4)
	left.Members[1], left.Reason = rl.Member{Index: 1, Outcome: rl.EnvironmentFault}, "task 1: it broke"
	late.Members[1], late.Reason = rl.Member{Index: 1, Outcome: rl.Deadline}, "task 2: too slow"
	for _, g := range []rl.Group{fine, left, late} {
		expect(t, "status", exchange.Accepted, submit(f, "w", g).Status)
	}
	expect(t, "faults", map[string]string{left.Environment: "task 1: it broke"}, f.Faults())
}
