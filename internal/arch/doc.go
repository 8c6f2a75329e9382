// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch has no code. Its tests hold the tree to the rules that keep it readable: the imports of programs, the
// length of files and functions, comments of exported names, constants in place of the literals of enums, and a line
// for each package in docs/architecture.md.
package arch
