// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rl is the arithmetic of the loop: the task of each slot, the slots of each step, the names of policies and
// checkpoints, the advantages of rewards, and the training data of groups. Package measure turns groups into metrics.
// Everything is a pure function of its arguments: no clock, no network, no file, no global state. Settings have the
// types of the run file (package contract). It knows neither Tinker nor Kubernetes.
//
// The loop in formulas:
//
//	slot i            -> (environment, split, task)      Stream
//	batch of step k    = the next G slots that count      Rules.Batches
//	seed of a sample   = H(request, run's seed)           Request.Seed
//	advantage of a trajectory = (reward - baseline) / scale   Advantages
//	v(k+1)             = H(v(k), manifest, settings)      Lineage.Next
//
// Two runs with the same arguments agree in every bit of all results, whatever the order of arrivals. Values that are
// hashed are written as tagged, length-prefixed, little-endian fields, never as text of floats or maps, and every NaN
// counts as the same NaN.
package rl
