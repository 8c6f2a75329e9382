// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts processes under limits, and tracks all of their descendants until they are gone, including
// descendants that leave their parent, their group and their session. A process that it starts is the reaper of its
// own descendants, so that they stay below it while it lives. When it ends they become children of the runner, which
// kills every child that it has not started.
package process
