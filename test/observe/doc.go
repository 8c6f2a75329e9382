// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe records anew what the official packages of tracking services send. Its tests have the build tag observe.
package observe
