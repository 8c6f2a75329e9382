// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

func (p *Proto) ckName(id uint8) string {
	if id == 0 {
		return "none"
	}
	if id == 255 {
		return "scratch"
	}
	c := p.cks.all[id]
	if c.Foreign {
		return "another run's s" + fmt.Sprint(c.Step)
	}
	poison := ""
	if c.W != c.Lin {
		poison = " POISONED"
	}
	return fmt.Sprintf("s%d-c%d-a%d.%d-L%d%s", c.Step, c.Cur, c.Att, c.Inc, c.Lin, poison)
}

func (p *Proto) groupName(g uint8) string {
	if g == 0 {
		return "-"
	}
	c := p.groups.all[g]
	t := ""
	if c.Tomb {
		t = " TOMBSTONE"
	}
	if c.Actual != c.Claimed {
		t += fmt.Sprintf(" (really L%d)", c.Actual)
	}
	return fmt.Sprintf("slot %d@L%d%s", c.Slot, c.Claimed, t)
}

func (p *Proto) linName(l uint8) string {
	if l == 0 {
		return "L0"
	}
	li := p.lins.all[l]
	var m []string
	for _, g := range []byte(li.Members) {
		m = append(m, p.groupName(g))
	}
	x := ""
	if li.Poison {
		x = " POISON"
	}
	return fmt.Sprintf("L%d=H(L%d,{%s})%s", l, li.Parent, strings.Join(m, ","), x)
}
