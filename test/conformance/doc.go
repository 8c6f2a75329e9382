// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance runs the official Python SDK against a tinkersim process, in the newest and the oldest version
// that the suite supports, each in its own virtual environment. The checks are in Python, in this directory; each of
// them is a subtest.
//
//	check_*.py    the checks
//	environment.py  clients, models and data of checks
//	reference.py  losses and Adam in NumPy
//	versions.py   the differences between versions of the SDK
//	coverage.py   which public methods of the SDK the checks call, and why some are not called
//	endpoint.py   the support table of any server
//
// It needs the package index once for each environment, and no other network.
package conformance
