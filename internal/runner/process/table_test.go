// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatOfAnyName(t *testing.T) {
	for _, name := range []string{"python3", "a b", ") R 1 1 1", "((", "", "a\nb"} {
		line := fmt.Sprintf("42 (%s) S 7 41 40 0 -1 4194304 1 2 3 4 100 50 20 10 39 19 1 0 12345 1000000 25 1844 1 1 0 0\n",
			name)
		got, err := parseStat([]byte(line), 4096)
		want := Process{PID: 42, Parent: 7, Group: 41, Started: 12345, CPU: 1800 * time.Millisecond, Resident: 25 * 4096}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, line := range []string{"", "42", "42 (x", "42 (x) S 1", "x (x) S" + strings.Repeat(" 1", 30),
		"42 (x) S" + strings.Repeat(" x", 30)} {
		if got, err := parseStat([]byte(line), 4096); err == nil {
			t.Errorf("%q: got %+v, want an error", line, got)
		}
	}
}

func TestReadTableHasThisProcess(t *testing.T) {
	table, err := ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	tree := table.Tree(os.Getpid())
	if len(tree) == 0 || tree[0].Parent != os.Getppid() || tree[0].Resident < 1<<20 || tree[0].Started == 0 {
		t.Errorf("got %+v, want this process", tree)
	}
	if os.Getppid() == 0 {
		t.Skip("this process is process 1: it has no parent that it could see")
	}
	if !table.Below(os.Getpid(), os.Getppid()) || table.Below(os.Getppid(), os.Getpid()) {
		t.Error("got this process not below its parent, or its parent below it")
	}
	if !table.Below(1<<30, os.Getpid()) {
		t.Error("a process that there is not: got it elsewhere, want it to count as below")
	}
}

func TestTreeAndSum(t *testing.T) {
	table := NewTable([]Process{
		{PID: 1}, {PID: 2, Parent: 1, Resident: 10, CPU: 1}, {PID: 3, Parent: 2, Resident: 20, CPU: 2},
		{PID: 4, Parent: 3, Zombie: true}, {PID: 5, Parent: 1, Resident: 100},
		{PID: 6, Parent: 7}, {PID: 7, Parent: 6}, // read while pids were reused
	})
	if got, want := Sum(table.Tree(2)), (Usage{Processes: 3, Zombies: 1, Resident: 30, CPU: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := len(table.Tree(6)); got != 2 {
		t.Errorf("a circle: got %d processes, want 2", got)
	}
	if got := len(table.Tree(99)); got != 0 {
		t.Errorf("no process: got %d, want none", got)
	}
	if !table.Below(6, 1) {
		t.Error("a circle: got it elsewhere, want it to count as below")
	}
}
