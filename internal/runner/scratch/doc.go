// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package scratch makes, measures and wipes the directories of episodes. Programs that may be hostile write into these
// directories: the package follows no link, opens every directory from the directory above it, and wipes a directory
// whatever its depth and permissions.
package scratch
