// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch has no code. Its tests hold the tree to the rules that keep it readable: which package imports
// which, how large files, functions, packages and types may grow, that exported names have comments, that enums
// are not spelled as literals, and that README.md lists the packages that exist.
package arch
