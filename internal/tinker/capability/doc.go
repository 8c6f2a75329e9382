// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package capability finds out what a server of the Tinker API does, by trying it. Servers take settings
// that they ignore and answer with success all the same, so nothing is believed that was not seen to have
// an effect: each probe compares two outcomes that differ if, and only if, the server does what it was
// asked for. The package knows the API alone; what a run needs is its caller's to say.
//
// # How
//
// One model of the probe's own, of the lowest rank, takes two optimizer steps on seventeen tokens and is
// saved. From that state further models take a third step that pulls the other way, each with one thing
// changed, and the log-probabilities after it are compared: with the optimizer's state or without it, with
// another beta, with a clipped gradient. Adam's momentum carries the restored model on in the old direction
// while a cold one turns round, so that the two cannot be mistaken for one another. Settings of losses
// show in the value of a forward pass over ratios on both sides of each bound.
//
// # What it costs
//
// Training costs 128 tokens for the first model and 48 for each further one: two of them for the optimizer's
// state, and one more than the settings of Adam that are asked about. A loss costs 16 tokens forward and 16
// more a setting. Sampling costs up to 256 tokens for the seed and as much for each sampling setting. A run with
// the usual settings comes to less than a thousand tokens, which is a hundredth of a cent or so on a large
// model. Two checkpoints are saved with an hour to live, and deleted at the end where the server can.
package capability
