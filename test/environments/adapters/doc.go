// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package adapters tests the adapters of config/samples/environments with the Python packages that they adapt. Its
// tests have the build tag conformance, and install a gigabyte of packages: `make conformance-environments` runs them.
package adapters
