// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe records anew what the official packages of tracking services send, and reads what the learner sends
// or writes with these packages and with their servers. One opens a transcript's page in a browser. Its tests have the
// build tag observe.
package observe
