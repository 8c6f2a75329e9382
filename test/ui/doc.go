// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui opens the pages of kubectl tinker ui in a browser, with the build tag ui: make test-ui.
package ui
