// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package scratch makes, measures and wipes the directories of episodes. Their files were made by programs that may be
// hostile: no link is followed, every directory is reached from the one above it, and neither depth nor permissions
// stop a wipe.
package scratch
