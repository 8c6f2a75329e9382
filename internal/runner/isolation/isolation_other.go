// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package isolation

// Find finds nothing: there is no runner here.
func Find() Found { return Found{} }
