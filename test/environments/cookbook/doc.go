// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package cookbook plays environments of two versions of tinker-cookbook with its own loop and with the adapter of
// config/samples/environments, and compares their rewards.
package cookbook
