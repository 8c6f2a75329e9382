// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package scratch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Base is the directory that contains all scratch directories. Its methods are safe for concurrent use.
type Base struct {
	path string
	dir  *os.File
	made atomic.Int64
}

const openDirectory = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Open makes the base, if it does not exist, and wipes the directories that an earlier runner has left in it.
func Open(path string) (*Base, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the scratch directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("opening the scratch directory: %w", err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the scratch directory: %w", err)
	}
	b := &Base{path: path, dir: dir}
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, b.Wipe(name))
	}
	return b, err
}

// Path returns the path of a directory of the base.
func (b *Base) Path(name string) string { return filepath.Join(b.path, name) }

// Make makes a directory with a name that no other directory of the base has had, and returns the name.
func (b *Base) Make() (string, error) {
	for {
		name := strconv.FormatInt(b.made.Add(1), 10)
		err := unix.Mkdirat(b.fd(), name, 0o700)
		if errors.Is(err, unix.EEXIST) { // a program has taken it
			continue
		}
		if errors.Is(err, unix.EACCES) && b.dir.Chmod(0o700) == nil { // a program has taken the permission away
			err = unix.Mkdirat(b.fd(), name, 0o700)
		}
		if err != nil {
			return "", fmt.Errorf("making a scratch directory: %w", err)
		}
		return name, nil
	}
}

// Write writes files into a directory that was just made, by their relative paths.
func (b *Base) Write(name string, files map[string]string) error {
	dir, err := openIn(b.fd(), name)
	if err != nil {
		return fmt.Errorf("writing the program's files: %w", err)
	}
	defer dir.Close()
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(dir.Fd()))) // a path could lead elsewhere by now
	if err != nil {
		return fmt.Errorf("writing the program's files: %w", err)
	}
	defer func() { _ = root.Close() }()
	for path, text := range files {
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("writing the program's files: %w", err)
		}
		if err := root.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the program's files: %w", err)
		}
	}
	return nil
}

func (b *Base) fd() int { return int(b.dir.Fd()) }

// passes is how often a wipe empties a directory that does not stay empty. A program that still fills it is alive, and
// must be killed first.
const passes = 20

// Wipe removes a directory of the base and everything in it. It is not an error if the directory does not exist.
func (b *Base) Wipe(name string) error {
	queue := []string{name}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for pass := 0; ; pass++ {
			moved, err := b.empty(next)
			queue = append(queue, moved...)
			if err == nil {
				err = unix.Unlinkat(b.fd(), next, unix.AT_REMOVEDIR)
			}
			if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) { // a program has put something else in its place
				err = unix.Unlinkat(b.fd(), next, 0)
			}
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) || pass == passes {
				return fmt.Errorf("wiping a scratch directory: %w", err)
			}
		}
	}
	return nil
}

// Clear wipes the content of a directory, and keeps the directory itself.
func (b *Base) Clear(name string) error {
	for pass := 0; ; pass++ {
		moved, err := b.empty(name)
		for _, dir := range moved {
			err = errors.Join(err, b.Wipe(dir))
		}
		if err != nil {
			return err
		}
		if len(moved) == 0 || pass == passes {
			return nil
		}
	}
}

// empty unlinks the files in a directory of the base, and moves directories that are not empty into the base. A wipe
// therefore has one directory open at a time, however deep the tree is. It returns the names of the directories that
// it has moved.
func (b *Base) empty(name string) ([]string, error) {
	dir, err := openIn(b.fd(), name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := dir.Chmod(0o700); err != nil {
		return nil, err
	}
	var moved []string
	for {
		names, err := dir.Readdirnames(1024)
		for _, entry := range names {
			to, err := b.remove(int(dir.Fd()), entry)
			if err != nil {
				return moved, err
			}
			if to != "" {
				moved = append(moved, to)
			}
		}
		if errors.Is(err, io.EOF) {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
	}
}

// remove unlinks an entry, or moves a directory into the base and returns its new name.
func (b *Base) remove(dir int, entry string) (string, error) {
	err := unix.Unlinkat(dir, entry, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return "", err
	}
	if err = unix.Unlinkat(dir, entry, unix.AT_REMOVEDIR); err == nil || errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if err = permit(dir, entry); err != nil { // a directory must be writable to be moved
		return "", err
	}
	for {
		to := strconv.FormatInt(b.made.Add(1), 10)
		err := unix.Renameat2(dir, entry, b.fd(), to, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		return to, err
	}
}

// openIn opens a directory below another, even if its owner has removed its permissions.
func openIn(dir int, name string) (*os.File, error) {
	fd, err := openNoLink(dir, name)
	if errors.Is(err, unix.EACCES) {
		if err = permit(dir, name); err == nil {
			fd, err = openNoLink(dir, name)
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openNoLink opens a directory that is not a link. It needs two steps: with O_DIRECTORY and without O_PATH, gVisor
// follows a link in spite of O_NOFOLLOW.
func openNoLink(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, openDirectory|unix.O_PATH, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Openat(fd, ".", openDirectory, 0)
}

// permit gives the owner of a directory all permissions. A chmod by name would follow a link that a program puts in
// the place of the directory.
func permit(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
