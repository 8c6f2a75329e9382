// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package isolation

// Find finds nothing: the runner needs Linux.
func Find() Found { return Found{} }
