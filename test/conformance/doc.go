// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance drives a tinkersim process with the official Python SDK, its newest and its
// oldest version that the suite knows, each in a virtual environment that is made on the spot. The
// checks are in Python, beside this file; each of them is a subtest.
//
//	check_*.py    the checks
//	reference.py  losses and Adam in NumPy
//	versions.py   what differs between versions of the SDK
//	coverage.py   which public methods of the SDK the checks call, and why some are not called
//	endpoint.py   the support table of any server
//
// The package index is needed once for each environment, and nothing else of the network.
package conformance
