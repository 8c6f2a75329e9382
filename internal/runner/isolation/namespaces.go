// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownNamespaces are the namespaces of a process that is kept apart: of processes, of mounts, of System V objects, and
// of users, since the others need privileges.
const ownNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// Separate gives a process that is about to start its own namespaces. The process is process 1 of its descendants, and
// has no pid for any other process. It must call Enter before it becomes a program.
func Separate(attributes *syscall.SysProcAttr) {
	uid, gid := os.Getuid(), os.Getgid()
	attributes.Cloneflags |= ownNamespaces
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
	// A process that starts with Pdeathsig kills itself if the pid of its parent has changed, as it has in a new
	// namespace.
	attributes.Pdeathsig = 0
}

// Enter makes this process, and the program that it becomes, see only its own descendants in /proc. A program of a
// policy can write only below home and read only installed files, as with ConfineFiles: no other file has a name.
// Enter drops all privileges.
func Enter(ofPolicy bool, home string, env []string) error {
	err := errors.Join(
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	switch {
	case err != nil:
	case ofPolicy:
		err = enterRoot(home, env)
	default:
		err = mountProcesses("/proc")
	}
	if err == nil {
		err = dropCapabilities()
	}
	if err != nil {
		return fmt.Errorf("entering namespaces: %w", err)
	}
	return nil
}

func mountProcesses(path string) error {
	return unix.Mount("proc", path, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// rootPath is the path at which a root is made: it exists in each container, and no root needs its content.
const rootPath = "/proc"

// root is a directory in memory that is becoming the root of a program.
type root struct {
	known []string // the paths that it has, with everything below them
}

// enterRoot makes a root of home and of the installed files, which are read-only, and enters it.
func enterRoot(home string, env []string) error {
	r := &root{known: []string{"/proc"}}
	if err := unix.Mount("tmpfs", rootPath, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return err
	}
	for _, path := range shown(env) {
		if err := r.add(path); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+target, in("/dev/"+name)); err != nil {
			return err
		}
	}
	err := errors.Join(os.Mkdir(in("/proc"), 0o555), mountProcesses(in("/proc")), r.bind(home, true))
	for dir := filepath.Dir(home); dir != "/" && !r.has(dir); dir = filepath.Dir(dir) { // passed, but not listed
		err = errors.Join(err, os.Chmod(in(dir), 0o111))
	}
	if err == nil {
		err = protect(home)
	}
	if err == nil {
		err = unix.Chroot(rootPath)
	}
	if err != nil {
		return err
	}
	return unix.Chdir(home)
}

// shown returns the paths that a program may read, and the targets of the links among them. A folder comes before its
// content.
func shown(env []string) []string {
	dirs, files := readable(env)
	paths := slices.Concat(dirs, files, devices)
	for i, path := range paths {
		paths[i] = filepath.Clean(path)
		if target, err := filepath.EvalSymlinks(path); err == nil {
			paths = append(paths, target)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return paths
}

func in(path string) string { return filepath.Join(rootPath, path) }

// add adds the entry at a path, if there is one.
func (r *root) add(path string) error {
	info, err := os.Lstat(path)
	if r.has(path) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSymlink {
		return r.bind(path, info.IsDir())
	}
	target, err := os.Readlink(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(in(path)), 0o755)
	}
	if err == nil {
		err = os.Symlink(target, in(path))
	}
	r.known = append(r.known, path)
	return err
}

func (r *root) has(path string) bool {
	return slices.ContainsFunc(r.known, func(known string) bool {
		return path == known || strings.HasPrefix(path, known+"/")
	})
}

// bind mounts the entry at a path at the same path of the root.
func (r *root) bind(path string, isDir bool) error {
	target := in(path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	var err error
	if isDir {
		err = os.MkdirAll(target, 0o755)
	} else {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err == nil {
		err = unix.Mount(path, target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("showing %s: %w", path, err)
	}
	r.known = append(r.known, path)
	return nil
}

// protect makes all mounts of a root read-only, but for home and the devices.
func protect(home string) error {
	mounts, err := os.ReadFile(in("/proc/self/mountinfo"))
	if err != nil {
		return err
	}
	writable := []string{in(home), in("/proc")}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if point != rootPath && !strings.HasPrefix(point, rootPath+"/") || slices.Contains(writable, point) ||
			slices.Contains(devices, strings.TrimPrefix(point, rootPath)) {
			continue
		}
		var stat unix.Statfs_t
		err := unix.Statfs(point, &stat)
		if errors.Is(err, fs.ErrNotExist) { // a mount of the container that the root covers
			continue
		}
		if err != nil {
			return err
		}
		kept := uintptr(stat.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		if err := unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept, ""); err != nil {
			return fmt.Errorf("making %s read-only: %w", point, err)
		}
	}
	return nil
}

// unescape returns a path of mountinfo without its escapes.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// dropCapabilities drops the capabilities that the namespaces gave this process. It empties the bounding set too,
// since a program of root would otherwise have them again.
func dropCapabilities() error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // there is no capability of this number
			break
		}
		if err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
