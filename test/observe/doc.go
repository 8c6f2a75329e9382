// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe compares the requests of the official packages of tracking services with the recorded requests, and
// reads the learner's requests and files with these packages and their servers. With -update, it records the requests
// anew. One test opens a transcript's page in a browser. The tests have the build tag observe.
package observe
