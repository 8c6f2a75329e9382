// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// socketMode lets the group of the directory connect: the caller's container may have another user.
const socketMode = 0o660

// socket is a listener with its file.
type socket struct {
	listener *net.UnixListener
	file     os.FileInfo
}

// listen listens at a path, in place of the file there.
func listen(path string) (*socket, error) {
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listening at the socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening at the socket: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	file, err := os.Lstat(temporary)
	if err == nil {
		err = os.Chmod(temporary, socketMode)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("listening at the socket: %w", err)
	}
	return &socket{listener: listener, file: file}, nil
}

// restore listens anew if the socket was removed or replaced, as a program can do, since it has the user of the
// runner.
func (s *Server) restore(present *socket) *socket {
	file, err := os.Lstat(s.Socket)
	if err == nil && os.SameFile(file, present.file) {
		return present
	}
	next, err := listen(s.Socket)
	if err != nil {
		s.Log.Error("The socket was removed and cannot be made again.", "err", err)
		return present
	}
	s.Log.Warn("The socket was removed and was made again.")
	_ = present.listener.Close()
	return next
}
