// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe records anew the requests of the official packages of tracking services, and reads the learner's
// requests and files with these packages and with their servers. One test opens a transcript's page in a browser. Its
// tests have the build tag observe.
package observe
