// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

import "syscall"

func control(string, string, syscall.RawConn) error { return nil }
