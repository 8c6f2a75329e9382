// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"testing"
)

// TestCheckNetwork checks that a start requires means to confine a network, unless the minimum is Process.
func TestCheckNetwork(t *testing.T) {
	cases := map[string]struct {
		found Found
		runs  map[Level]bool
	}{
		"nothing":       {Found{}, map[Level]bool{"": true, Process: true, Landlock: false, RuntimeClass: false}},
		"notifications": {Found{Notifies: true}, map[Level]bool{Process: true, Landlock: false}},
		"the first Landlock": {Found{ABI: 1, Notifies: true},
			map[Level]bool{Process: true, Landlock: false, RuntimeClass: false}},
		"Landlock":                       {Found{ABI: 2, Notifies: true}, map[Level]bool{Process: true, Landlock: true}},
		"Landlock without notifications": {Found{ABI: 7}, map[Level]bool{Process: true, Landlock: false}},
		"gVisor, which has none": {Found{OwnKernel: true, Namespaces: true},
			map[Level]bool{Process: true, RuntimeClass: false}},
		"a kernel of its own that has them": {Found{OwnKernel: true, Namespaces: true, Notifies: true},
			map[Level]bool{RuntimeClass: true}},
	}
	for name, tc := range cases {
		for minimum, runs := range tc.runs {
			if err := tc.found.CheckNetwork(minimum, false); (err == nil) != runs {
				t.Errorf("%s with the minimum %q: got %v, want a start: %v", name, minimum, err, runs)
			}
		}
	}
}

// TestCheckNetworkOfClosedContainers checks that gVisor, which cannot confine a network, runs programs in a container
// that reaches no other machine. Other kernels keep their conditions.
func TestCheckNetworkOfClosedContainers(t *testing.T) {
	gVisor := Found{OwnKernel: true, Namespaces: true}
	for _, minimum := range []Level{Process, Landlock, RuntimeClass} {
		if err := gVisor.CheckNetwork(minimum, true); err != nil {
			t.Errorf("gVisor with the minimum %s: %v", minimum, err)
		}
	}
	for name, found := range map[string]Found{"gVisor without namespaces": {OwnKernel: true}, "Landlock alone": {ABI: 7}} {
		if found.CheckNetwork(Landlock, true) == nil {
			t.Errorf("%s runs a program in a container that reaches no other machine", name)
		}
	}
}

func TestLevels(t *testing.T) {
	cases := map[string]struct {
		found Found
		level Level
		apart bool
		runs  map[Level]bool
	}{
		"nothing": {Found{}, Process, false, map[Level]bool{"": true, Process: true, Landlock: false, RuntimeClass: false}},
		"an early Landlock": {Found{ABI: 1}, Landlock, false,
			map[Level]bool{Process: true, Landlock: true, RuntimeClass: false}},
		"a Landlock that keeps signals apart": {Found{ABI: 6}, Landlock, true, map[Level]bool{Landlock: true}},
		"a kernel of its own": {Found{OwnKernel: true, Namespaces: true}, RuntimeClass, true,
			map[Level]bool{Landlock: true, RuntimeClass: true}},
		"a kernel of its own that keeps nothing apart": {Found{OwnKernel: true}, Process, false,
			map[Level]bool{Process: true, Landlock: false, RuntimeClass: false}},
	}
	for name, tc := range cases {
		if tc.found.Level() != tc.level || tc.found.KeepsApart() != tc.apart {
			t.Errorf("%s: got %s, apart %v; want %s, %v", name, tc.found.Level(), tc.found.KeepsApart(), tc.level, tc.apart)
		}
		for minimum, runs := range tc.runs {
			if err := tc.found.Check(minimum); (err == nil) != runs {
				t.Errorf("%s with the minimum %q: got %v, want a start: %v", name, minimum, err, runs)
			}
		}
	}
}
