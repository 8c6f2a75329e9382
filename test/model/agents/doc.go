// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package agents is the model of one member whose agent sends requests that do not say which conversation they
// continue. It checks that the requests and the training data do not depend on the order of requests, even if clients
// leave and ask again, are asked to come back, or give up, and if the worker dies.
package agents
