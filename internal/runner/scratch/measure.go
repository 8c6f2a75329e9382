// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package scratch

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Size is the size of directories on the disk.
type Size struct {
	Bytes, Files int64
}

// maxDepth is how deep Measure looks. A directory that is deeper counts as more files than any limit permits.
const maxDepth = 64

// Measure adds up the sizes of directories of the base. It stops as soon as a sum is above its limit. It does not
// count files that were removed and are still open: the limits of open files and of the size of a file bound them.
func (b *Base) Measure(names []string, limit Size) (Size, error) {
	m := measure{limit: limit}
	for _, name := range names {
		dir, err := openIn(b.fd(), name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return m.size, err
		}
		if err := m.directory(dir, 0); err != nil {
			return m.size, err
		}
	}
	return m.size, nil
}

type measure struct{ size, limit Size }

func (m *measure) over() bool { return m.size.Bytes > m.limit.Bytes || m.size.Files > m.limit.Files }

// directory adds the size of a directory, and closes it.
func (m *measure) directory(dir *os.File, depth int) error {
	defer dir.Close()
	if depth > maxDepth {
		m.size.Files = m.limit.Files + 1
		return nil
	}
	for !m.over() {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if err := m.entry(dir, name, depth); err != nil || m.over() {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *measure) entry(dir *os.File, name string, depth int) error {
	var stat unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.EACCES) && dir.Chmod(0o700) == nil {
		err = unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	m.size.Files++
	m.size.Bytes += stat.Blocks * 512
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	below, err := openIn(int(dir.Fd()), name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.directory(below, depth+1)
}
