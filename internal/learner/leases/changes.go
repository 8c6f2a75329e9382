// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import "github.com/tinker-operator/tinker-operator/internal/wait"

// changes signals changes of a table. Workers that wait for leases wait for leasable, which is notified only while
// there is a group to lease: most of the time all groups of a batch are leased, and a group that is submitted need not
// wake every worker's call.
type changes struct{ any, leasable wait.Signal }

// notify reports a change of the table whose tally is t. The table's lock is held.
func (c *changes) notify(t *tally) {
	c.any.Notify()
	if t.free > 0 {
		c.leasable.Notify()
	}
}

// notifyAll reports a change of the table, whether there is a group to lease or not.
func (c *changes) notifyAll() {
	c.any.Notify()
	c.leasable.Notify()
}
