// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package survival

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// mountsVolumes is the environment variable that TestVolume sets for the process that may mount file systems.
const mountsVolumes = "SURVIVAL_MOUNTS_VOLUMES"

// TestVolume runs TestMountedVolume in a process that has mounts of its own, as root or in a user namespace.
func TestVolume(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMountedVolume$", "-test.count=1", "-test.v")
	command.Env = append(os.Environ(), mountsVolumes+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	output, err := command.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || bytes.Contains(output, []byte(mayNotMount)) {
		t.Skip("this machine allows no mounts, not even in a user namespace")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// mayNotMount is printed by TestMountedVolume if it may not mount file systems.
const mayNotMount = "file systems cannot be mounted"

// TestMountedVolume keeps artifacts on a small volume of its own, which becomes full or read-only. The run continues
// once the volume is repaired.
func TestMountedVolume(t *testing.T) {
	if os.Getenv(mountsVolumes) == "" {
		t.Skip("TestVolume runs it")
	}
	tests := map[string]func(*testing.T, *fixture, storeOutage, outcome){
		"waits": checkOutage, "drains before a step": checkDrainBeforeAStep, "drains within a step": checkDrainWithinAStep,
		"begins": checkBeginning,
	}
	for name, test := range tests {
		t.Run("a full volume, "+name, func(t *testing.T) {
			want := baseline(t)
			w := newFixture(t, nil)
			mount(t, "tmpfs", w.artifacts, "tmpfs", 0, "size=1m")
			filler := filepath.Join(w.artifacts, "filler")
			test(t, w, storeOutage{
				begin: func() { fill(t, filler) }, end: func() { remove(t, filler) }, problem: "no space left on device",
				collect: func() {}, another: func() {},
			}, want)
		})
		if name == "begins" {
			continue // The folder of rows does not exist yet.
		}
		t.Run("a read-only volume, "+name, func(t *testing.T) {
			want := baseline(t)
			w := newFixture(t, nil)
			// Only the folder of rows becomes read-only: a file system with a file that is open for writing cannot, and no row
			// is open.
			rows := filepath.Join(w.artifacts, w.file.Run.UID, "rows")
			test(t, w, storeOutage{
				begin: func() {
					mount(t, rows, rows, "", syscall.MS_BIND, "")
					mount(t, "", rows, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
				},
				end:     func() { unmount(t, rows) },
				problem: "read-only file system", collect: func() {}, another: func() {},
			}, want)
		})
	}
}

// checkBeginning begins a learner while the volume is full.
func checkBeginning(t *testing.T, w *fixture, outage storeOutage, want outcome) {
	outage.begin()
	w.startWorker("w0", behavior{})
	a := w.startLearner(1, nil)
	w.awaitOutage(a, outage)
	outage.end()
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
}

// mount mounts a file system, or changes how it is mounted.
func mount(t *testing.T, source, at, kind string, flags uintptr, options string) {
	t.Helper()
	err := syscall.Mount(source, at, kind, flags, options)
	if errors.Is(err, syscall.EPERM) {
		t.Log(mayNotMount)
	}
	if err != nil {
		t.Errorf("mounting %s: %v", at, err)
	}
	if flags == 0 {
		t.Cleanup(func() { unmount(t, at) })
	}
}

func unmount(t *testing.T, at string) {
	t.Helper()
	if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
		t.Errorf("unmounting %s: %v", at, err)
	}
}

// fill writes a file until the volume is full.
func fill(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("filling the volume: %v, want %v", err, syscall.ENOSPC)
		}
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Error(err)
	}
}
