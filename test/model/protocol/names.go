// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
)

func (c *content) checkpointName(id uint8) string {
	switch id {
	case 0:
		return "none"
	case scratch:
		return "scratch"
	}
	k := c.checkpoints.all[id]
	if k.Foreign {
		return fmt.Sprintf("another run's s%d", k.Step)
	}
	corrupt := ""
	if k.Weights != k.Lineage {
		corrupt = " CORRUPT"
	}
	return fmt.Sprintf("s%d-c%d-a%d.%d-L%d%s", k.Step, k.Cursor, k.Attempt, k.Model, k.Lineage, corrupt)
}

func (c *content) groupName(id uint8) string {
	if id == 0 {
		return "-"
	}
	g := c.groups.all[id]
	name := fmt.Sprintf("slot %d@L%d", g.Slot, g.Claimed)
	if g.Tombstone {
		name += " TOMBSTONE"
	}
	if g.Actual != g.Claimed {
		name += fmt.Sprintf(" (really L%d)", g.Actual)
	}
	return name
}

func (c *content) lineageName(id uint8) string {
	if id == 0 {
		return "L0"
	}
	l := c.lineages.all[id]
	var members []string
	for _, g := range []byte(l.Members) {
		members = append(members, c.groupName(g))
	}
	corrupt := ""
	if l.Corrupt {
		corrupt = " CORRUPT"
	}
	return fmt.Sprintf("L%d=H(L%d,{%s})%s", id, l.Parent, strings.Join(members, ","), corrupt)
}

func (c *content) storedNames(w *Worker) string {
	var names []string
	for _, g := range w.Stored {
		if g != 0 {
			names = append(names, c.groupName(g))
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
