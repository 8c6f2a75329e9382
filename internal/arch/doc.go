// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch has no code: its tests hold the tree to the rules that keep it readable, which are who
// may import whom, how large things may grow, and that what is exported is explained.
package arch
