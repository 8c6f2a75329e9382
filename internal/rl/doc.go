// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rl is the arithmetic of the loop: which task a slot is, which slots a step trains on, what a policy and a
// checkpoint are called, and how rewards become advantages and groups become training data. Package measure turns
// groups into metrics. Everything is a pure function of its arguments: no clock, no network, no file, no global state.
// Settings have the types of the run file (package contract). It knows neither Tinker nor Kubernetes.
//
// The loop in formulas:
//
//	slot i            -> (environment, split, task)      Stream
//	batch of step k    = the next G slots that count      Rules.Plan
//	seed of a sample   = H(request, run's seed)           Request.Seed
//	advantage of a trajectory = (reward - baseline) / scale   Advantages
//	v(k+1)             = H(v(k), manifest, settings)      Lineage.Next
//
// Two runs that share their arguments agree in every bit of all of these, in whatever order results came
// in. What is hashed is written out as tagged, length-prefixed, little-endian fields, never as text of
// floats or maps, and every NaN counts as the same NaN.
package rl
