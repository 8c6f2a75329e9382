// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments tests environments on servers that others wrote: the servers of the Python packages ors-sdk and
// openreward. Its tests have the build tag conformance.
package environments
