// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package learner is the training loop of a run: it opens a model from the newest saved state, collects the
// batch of each step from the rollout workers, trains, saves and goes on, until the last step is committed
// and every evaluation has its result. It knows nothing of Kubernetes.
//
// A learner may be killed at any instruction and loses nothing but time; two may run at once, and then one
// of them commits nothing. That rests on an order of acts which no change may disturb:
//
//	open:   claim the attempt, list the states, load the newest, save it under one's own name
//	step:   submit, all replies clean, save and announce the sampler, write the row,
//	        save the state (its clean reply is the commit), look for a higher claim, cover, retire
//
// Anything unclean in between poisons the model: it is thrown away and another one is opened.
package learner
