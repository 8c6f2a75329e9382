// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of times in /proc. It is the same on all architectures on which Go supports Linux.
const clockTick = 10 * time.Millisecond

// Process is one row of the table of processes.
type Process struct {
	PID, Parent, Group int
	// Zombie is set if the process has ended and its parent has not read its status.
	Zombie bool
	// Started is when it started, in clock ticks since the machine was booted. The same pid with another value is another
	// process.
	Started uint64
	// CPU is the processor time of the process and of its children that have ended.
	CPU time.Duration
	// Resident is its resident memory in bytes. Pages that processes share count for each of them.
	Resident int64
}

// Table has the processes that existed at one time.
type Table struct {
	processes map[int]Process
	children  map[int][]int
}

// NewTable returns the table of these processes.
func NewTable(processes []Process) Table {
	t := Table{processes: make(map[int]Process, len(processes)), children: make(map[int][]int, len(processes))}
	for _, p := range processes {
		t.processes[p.PID] = p
		t.children[p.Parent] = append(t.children[p.Parent], p.PID)
	}
	return t
}

// ReadTable reads the table from /proc. Processes that end while it reads may be missing.
func ReadTable() (Table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return Table{}, fmt.Errorf("reading the processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return Table{}, fmt.Errorf("reading the processes: %w", err)
	}
	var processes []Process
	buffer := make([]byte, 2048)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, err := readStat(name, buffer); err == nil {
			processes = append(processes, p)
		}
	}
	return NewTable(processes), nil
}

func readStat(pid string, buffer []byte) (Process, error) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return Process{}, err
	}
	return parseStat(buffer[:n], os.Getpagesize())
}

// parseStat parses a line of /proc/PID/stat. The name of the command, in brackets, may contain anything, brackets
// included.
func parseStat(line []byte, page int) (Process, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return Process{}, errors.New("parsing a process: it has no name")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	fields := bytes.Fields(line[end+1:]) // from the third on, the state
	if err != nil || len(fields) < 22 {
		return Process{}, errors.New("parsing a process: it has too few fields")
	}
	number := func(i int) int64 {
		value, parseErr := strconv.ParseInt(string(fields[i-3]), 10, 64)
		err = errors.Join(err, parseErr)
		return value
	}
	p := Process{
		PID: pid, Parent: int(number(4)), Group: int(number(5)),
		Zombie:   fields[0][0] == 'Z' || fields[0][0] == 'X',
		CPU:      time.Duration(number(14)+number(15)+number(16)+number(17)) * clockTick,
		Started:  uint64(number(22)),
		Resident: number(24) * int64(page),
	}
	return p, err
}

// Tree returns a process and its descendants, the process first. It is empty if there is no such process.
func (t Table) Tree(root int) []Process {
	first, ok := t.processes[root]
	if !ok {
		return nil
	}
	tree := []Process{first}
	seen := map[int]bool{root: true}
	for i := 0; i < len(tree); i++ {
		for _, child := range t.children[tree[i].PID] {
			if !seen[child] { // a pid that was used again while the table was read could close a circle
				seen[child] = true
				tree = append(tree, t.processes[child])
			}
		}
	}
	return tree
}

// Below reports whether pid is a descendant of root. A process that is not in the table counts as a descendant.
func (t Table) Below(pid, root int) bool {
	for range len(t.processes) + 1 {
		p, ok := t.processes[pid]
		if !ok || p.Parent == root {
			return true
		}
		if pid = p.Parent; pid == 0 {
			return false
		}
	}
	return true
}

// Usage has the resources that a tree of processes uses.
type Usage struct {
	Processes, Zombies int
	Resident           int64
	CPU                time.Duration
}

// Sum returns the usage of a tree. Zombies count as processes.
func Sum(tree []Process) Usage {
	usage := Usage{Processes: len(tree)}
	for _, p := range tree {
		usage.Resident += p.Resident
		usage.CPU += p.CPU
		if p.Zombie {
			usage.Zombies++
		}
	}
	return usage
}

// CPU returns the processor time of a process and of its children that have ended, or 0 if there is no such process.
func CPU(pid int) time.Duration {
	p, err := readStat(strconv.Itoa(pid), make([]byte, 2048))
	if err != nil {
		return 0
	}
	return p.CPU
}
