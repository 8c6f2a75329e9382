// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch has no code. Its tests hold the tree to the rules that keep it readable: what a program may reach, how
// long files and functions are, that exported names have comments, that enums are not spelled as literals, and that
// docs/architecture.md lists all packages.
package arch
