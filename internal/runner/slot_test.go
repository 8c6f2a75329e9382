// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

func TestPauseIsBounded(t *testing.T) {
	want := []time.Duration{0, 0, firstPause, 2 * firstPause, 4 * firstPause}
	for ends, pauseOf := range want {
		if got := pause(ends); got != pauseOf {
			t.Errorf("after %d ends: got %s, want %s", ends, got, pauseOf)
		}
	}
	for _, ends := range []int{10, 100, 1 << 40} {
		if got := pause(ends); got != lastPause {
			t.Errorf("after %d ends: got %s, want %s", ends, got, lastPause)
		}
	}
}

func TestLimitsOfATree(t *testing.T) {
	limits := protocol.Limits{Processes: 4, MemoryBytes: 100, CPUSeconds: 2}
	cases := map[string]struct {
		usage process.Usage
		cpu   time.Duration
		idle  bool
		want  string
	}{
		"at the limits":             {usage: process.Usage{Processes: 4, Resident: 100}, cpu: 2 * time.Second},
		"processes":                 {usage: process.Usage{Processes: 5}, want: "processes"},
		"memory":                    {usage: process.Usage{Resident: 101}, want: "memoryBytes"},
		"processor time":            {cpu: 2*time.Second + 1, want: "cpuSeconds"},
		"processor time of no call": {cpu: time.Hour, idle: true},
		"all":                       {usage: process.Usage{Processes: 5, Resident: 101}, cpu: time.Hour, want: "processes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if why := exceeded(limits, tc.usage, tc.cpu, !tc.idle); why != nil {
				got = why.evidence.Limit
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if why := exceeded(protocol.Limits{Processes: 1, MemoryBytes: 1}, process.Usage{}, time.Hour, true); why != nil {
		t.Errorf("without a limit of processor time: got %v, want none", why.err)
	}
}

func TestClockLeavesQuestionsOut(t *testing.T) {
	begin := time.Unix(1000, 0)
	r := &request{running: begin, spent: time.Second}
	if got := r.clock(begin.Add(3 * time.Second)); got != 4*time.Second {
		t.Errorf("got %s, want 4 s", got)
	}
	r.questions = 1
	if got := r.clock(begin.Add(time.Hour)); got != time.Second {
		t.Errorf("while a question is open: got %s, want 1 s", got)
	}
}

// TestSharedMemoryCountsOnce adds up the memory of a tree in which calls are forks of one process. The memory of that
// process is left out, up to what it had when the program was ready: the forks share it.
func TestSharedMemoryCountsOnce(t *testing.T) {
	process1 := func(pid, parent int, resident int64) process.Process {
		return process.Process{PID: pid, Parent: parent, Resident: resident}
	}
	ready := process.NewTable([]process.Process{process1(7, 1, 8), process1(8, 7, 50), process1(9, 1, 100)})
	for name, tc := range map[string]struct {
		forks bool
		tree  []process.Process
		want  int64
	}{
		"a call":                {true, []process.Process{process1(7, 1, 8), process1(8, 7, 50), process1(10, 8, 60)}, 68},
		"no forks":              {false, []process.Process{process1(7, 1, 8), process1(8, 7, 50), process1(10, 8, 60)}, 118},
		"a process that grows":  {true, []process.Process{process1(7, 1, 8), process1(8, 7, 90), process1(10, 8, 60)}, 108},
		"a process that shrank": {true, []process.Process{process1(7, 1, 8), process1(8, 7, 20), process1(10, 8, 60)}, 68},
		"nothing to do":         {true, []process.Process{process1(7, 1, 8), process1(8, 7, 50)}, 8},
		"another that has its pid": {true, []process.Process{process1(7, 1, 8), {PID: 8, Parent: 7, Started: 1,
			Resident: 50}}, 58},
	} {
		w := &watch{child: &process.Child{PID: 7}}
		w.ready(ready, tc.forks)
		if got := process.Sum(tc.tree).Resident - w.sharedBy(tc.tree); got != tc.want {
			t.Errorf("%s: got %d bytes, want %d", name, got, tc.want)
		}
	}
}
