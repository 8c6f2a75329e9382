// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package agents is the model of one member whose agent sends requests that do not say which conversation they
// continue: whether the requests and the training data are the same whatever their order, also when clients leave and
// ask again, are asked to come back and give up, and when the worker dies.
package agents
