// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// gVisor reports this version of its kernel, whatever its release.
const gVisorVersion = "#1 SMP Sun Jan 10 15:06:54 PST 2016"

// Find finds the means of isolation of this machine.
func Find() Found {
	var found Found
	if abi, err := syscall.LandlockGetABIVersion(); err == nil {
		found.ABI = abi
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		found.OwnKernel = unix.ByteSliceToString(name.Version[:]) == gVisorVersion
		found.Notifies = notifies(unix.ByteSliceToString(name.Release[:]))
	}
	return found
}

// installed are the folders that the programs of an image are installed in. Other folders hold files of other programs,
// of the node or of a person: /tmp, /run, /home, /root, /var, /sys.
var installed = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt", "/etc", "/nix", "/app", "/proc",
}

// devices are the devices that programs can use without harm.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// beside are the names of entries that an interpreter needs beside its folder in PATH.
var beside = []string{"lib", "lib64", "libexec", "pyvenv.cfg"}

// readable returns the folders and files that a program may read: the folders of the image, and what its PATH needs,
// which may be elsewhere on a workstation.
func readable(env []string) (dirs, files []string) {
	dirs = append(dirs, installed...)
	for _, variable := range env {
		list, found := strings.CutPrefix(variable, "PATH=")
		if !found {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
				continue
			}
			dirs = append(dirs, dir)
			for _, name := range beside {
				path := filepath.Join(filepath.Dir(filepath.Clean(dir)), name)
				if filepath.Ext(name) != "" {
					files = append(files, path)
				} else {
					dirs = append(dirs, path)
				}
			}
		}
	}
	return dirs, files
}

// ConfineFiles lets this process, and the program that it becomes, write only below home and read only installed
// files. It does nothing without Landlock, and needs no_new_privs.
func (f Found) ConfineFiles(home string, env []string) error {
	if f.ABI == 0 {
		return nil
	}
	dirs, files := readable(env)
	own := landlock.RWDirs(home)
	if f.ABI > 1 {
		own = own.WithRefer()
	}
	config := landlock.V7.BestEffort() // files, signals and abstract sockets, as of version 7
	err := config.Restrict(own, landlock.RODirs(dirs...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing(),
		landlock.RWFiles(devices...).IgnoreIfMissing())
	if err != nil {
		return fmt.Errorf("confining the program to its files: %w", err)
	}
	return nil
}

// ConfineProcess keeps this process, and the program that it becomes, from the memory, the environments and, as far as
// the kernel can, the signals of processes that it has not started, and from TCP except for connections that it is
// given. It does not change rights to files.
func (f Found) ConfineProcess() error {
	var err error
	switch {
	case f.ABI >= networkABI:
		all := landlock.V7.BestEffort()
		if err = all.RestrictNet(); err == nil && f.ABI >= scopedABI {
			err = all.RestrictScoped()
		}
	case f.ABI >= domainABI:
		err = landlock.V2.BestEffort().RestrictPaths(landlock.RWDirs("/").WithRefer())
	}
	if err != nil {
		return fmt.Errorf("confining the program to its own processes: %w", err)
	}
	return nil
}

// networkABI is the first version of Landlock that forbids connections.
const networkABI = 4
