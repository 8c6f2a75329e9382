// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/scratch"
)

// watch bounds the resources of a process and its tree. It kills a process without the help of the program's
// goroutine, so that the bounds hold even while the goroutine is busy.
type watch struct {
	children *process.Children
	child    *process.Child
	limits   protocol.Limits
	// doom is why the process was killed. The first reason counts.
	doom    atomic.Pointer[doom]
	zombies atomic.Int64
	peak    atomic.Int64
	cpu     atomic.Int64 // of the tree, in nanoseconds
	printed atomic.Int64
	// printedBefore counts the bytes that were printed before the present episode.
	printedBefore atomic.Int64

	mu sync.Mutex
	// episode is odd while the process has a call or a session, and grows when the first begins and when the last ends.
	episode int64
	dirs    map[string]bool
	kept    map[process.Identity]bool // processes that were started before the process was ready
	dirty   bool                      // the process was seen to have started others
	// shared is the resident memory of the kept descendants, if the calls are forks of these.
	shared int64

	// Only the sampler uses the fields below.
	cpuEpisode int64
	cpuBefore  time.Duration
	measured   time.Time
	measuring  time.Duration
}

// doom is the reason why a process is killed.
type doom struct {
	err      *protocol.Error
	evidence protocol.Evidence
}

func overLimit(name string, value, seen float64, message string) *doom {
	return &doom{
		err:      &protocol.Error{Code: protocol.CodeLimit, Message: message},
		evidence: protocol.Evidence{Limit: name, Value: value, Seen: seen},
	}
}

// kill kills the process, with a reason.
func (w *watch) kill(why *doom) {
	w.doom.CompareAndSwap(nil, why)
	w.children.Kill(w.child)
}

// sample looks at all processes, ten times a second.
func (s *Server) sample(ctx context.Context) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		table, err := s.Children.Sweep()
		if err != nil {
			s.Log.Error("The processes cannot be read. No limit of memory or processes holds.", "err", err)
			continue
		}
		s.mu.Lock()
		watched, connections := slices.Collect(maps.Keys(s.watched)), slices.Collect(maps.Keys(s.connections))
		s.mu.Unlock()
		for _, w := range watched {
			w.look(table)
			w.measure(s.Scratch)
		}
		for _, c := range append(connections, s.shared.conn) {
			c.look()
		}
	}
}

// look compares the usage of the tree with the limits.
func (w *watch) look(table process.Table) {
	tree := table.Tree(w.child.PID)
	if len(tree) == 0 {
		return
	}
	usage := process.Sum(tree)
	usage.Resident -= w.sharedBy(tree)
	w.zombies.Store(int64(usage.Zombies))
	w.cpu.Store(int64(usage.CPU))
	if usage.Resident > w.peak.Load() {
		w.peak.Store(usage.Resident)
	}
	episode, busy := w.inEpisode()
	if episode != w.cpuEpisode {
		w.cpuEpisode, w.cpuBefore = episode, usage.CPU
	}
	if why := exceeded(w.limits, usage, usage.CPU-w.cpuBefore, busy); why != nil {
		w.kill(why)
		return
	}
	w.findLeft(tree)
}

// exceeded returns which limit a tree exceeds, or nil.
func exceeded(l protocol.Limits, usage process.Usage, cpu time.Duration, busy bool) *doom {
	switch {
	case usage.Processes > l.Processes:
		return overLimit("processes", float64(l.Processes), float64(usage.Processes), "The program has too many processes.")
	case usage.Resident > l.MemoryBytes:
		return overLimit("memoryBytes", float64(l.MemoryBytes), float64(usage.Resident), "The program needs too much memory.")
	case busy && l.CPUSeconds > 0 && cpu.Seconds() > l.CPUSeconds:
		return overLimit("cpuSeconds", l.CPUSeconds, cpu.Seconds(), "The call needs too much processor time.")
	}
	return nil
}

// findLeft notes whether the process has descendants that it did not have when it was ready, and kills them if it has
// nothing to do.
func (w *watch) findLeft(tree []process.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil { // the process is not ready
		return
	}
	w.dirty = slices.ContainsFunc(tree[1:], func(p process.Process) bool { return !p.Zombie && !w.kept[p.Identity()] })
	if w.dirty && w.episode%2 == 0 {
		w.killLeft()
	}
}

// killLeft kills the descendants that the process did not have when it was ready, or the whole tree if they start
// others faster. It returns how many it has killed.
func (w *watch) killLeft() int {
	killed, err := w.children.KillBelow(w.child, w.kept)
	if err != nil {
		w.kill(overLimit("processes", float64(w.limits.Processes), float64(killed),
			"The program leaves processes behind that start others."))
	}
	return killed
}

// ready remembers the processes that the process has started before its first call: they are a part of it. If forks is
// set, the calls share the memory of these processes.
func (w *watch) ready(table process.Table, forks bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = map[process.Identity]bool{}
	for _, p := range table.Tree(w.child.PID) {
		w.kept[p.Identity()] = true
		if forks && p.PID != w.child.PID {
			w.shared += p.Resident
		}
	}
}

// sharedBy returns the memory of a tree that already counts for its calls: the memory of the processes that the calls
// are forks of, without their growth since ready.
func (w *watch) sharedBy(tree []process.Process) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shared == 0 {
		return 0
	}
	var resident int64
	for _, p := range tree[1:] {
		if w.kept[p.Identity()] {
			resident += p.Resident
		}
	}
	return min(resident, w.shared)
}

// ownCPU returns the processor time of the process, and of the processes that its calls are forks of.
func (w *watch) ownCPU() time.Duration {
	spent := process.CPU(w.child.PID)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shared == 0 {
		return spent
	}
	for kept := range w.kept {
		if kept.PID != w.child.PID {
			spent += process.CPU(kept.PID)
		}
	}
	return spent
}

// setDir notes whether a scratch directory counts for the process.
func (w *watch) setDir(name string, counts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirs == nil {
		w.dirs = map[string]bool{}
	}
	if counts {
		w.dirs[name] = true
	} else {
		delete(w.dirs, name)
	}
}

// measuringShare limits the time of measuring: after it has measured the directories of a process, the sampler leaves
// them alone for measuringShare times as long.
const measuringShare = 20

// measure compares the directories with their limits. It measures large directories less often.
func (w *watch) measure(base *scratch.Base) {
	begin := time.Now()
	if begin.Sub(w.measured) < measuringShare*w.measuring {
		return
	}
	w.mu.Lock()
	dirs := slices.Sorted(maps.Keys(w.dirs))
	w.mu.Unlock()
	limit := scratch.Size{Bytes: w.limits.ScratchBytes, Files: w.limits.ScratchFiles}
	size, err := base.Measure(dirs, limit)
	w.measured = time.Now()
	w.measuring = w.measured.Sub(begin)
	switch {
	case err != nil:
		w.kill(overLimit("scratchFiles", float64(limit.Files), 0, "The program's scratch directory cannot be read: "+
			err.Error()+"."))
	case size.Bytes > limit.Bytes:
		w.kill(overLimit("scratchBytes", float64(limit.Bytes), float64(size.Bytes),
			"The program's scratch directories are full."))
	case size.Files > limit.Files:
		w.kill(overLimit("scratchFiles", float64(limit.Files), float64(size.Files),
			"The program's scratch directories have too many files."))
	}
}

// hasPrinted counts the bytes that the process has printed.
func (w *watch) hasPrinted(n int) {
	printed := w.printed.Add(int64(n)) - w.printedBefore.Load()
	if printed > w.limits.OutputBytes {
		w.kill(overLimit("outputBytes", float64(w.limits.OutputBytes), float64(printed), "The program prints too much."))
	}
}

// begin is called before the first request of an episode. It waits while the sampler kills processes that the last
// episode has left behind.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.episode++
	w.printedBefore.Store(w.printed.Load())
	w.peak.Store(0)
}

// end is called after the last request of an episode. It kills processes that the episode has left behind, and returns
// their number. A single call is often shorter than the time between two looks, and a look would take as long as the
// call. Therefore end kills the processes of a call only if the sampler has seen them; otherwise the sampler kills
// them within two looks.
func (w *watch) end(ofSession bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := 0
	if w.dirty || ofSession {
		left = w.killLeft()
		w.dirty = false
	}
	w.episode++
	return left
}

func (w *watch) inEpisode() (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.episode, w.episode%2 == 1
}
