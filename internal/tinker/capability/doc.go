// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package capability checks which features of the Tinker API a server supports, by trying them. Some servers accept
// settings, ignore them and report success. So each check compares two outcomes that differ if, and only if, the
// server does what the request says. The package knows the API alone; its caller knows what a run needs.
//
// # How
//
// The check creates a model of the lowest rank, takes two optimizer steps on seventeen tokens and saves its state.
// Further models load that state and take a third step in the opposite direction, each with one setting changed, and
// the check compares the log-probabilities after it: with or without the optimizer's state, with another beta, with a
// clipped gradient. With the optimizer's state, Adam's momentum continues in the old direction; without it, the model
// moves in the opposite direction. The settings of losses show in the value of a forward pass over ratios on both sides
// of each bound.
//
// # What it costs
//
// A check of gradients and repeats alone needs no saved state: it steps new adapters, and saves nothing.
//
// Training costs 128 tokens for the first model and 48 for each further one: two of them for the optimizer's state, and
// one more than the number of wanted Adam settings. A loss costs 16 tokens forward and 16 more for each setting.
// Sampling costs 512 tokens, another 1,024 for the seed and 512 for each sampling setting. A run with the usual
// settings costs less than three thousand tokens, which is a few hundredths of a cent on a large model. The check saves
// two checkpoints with a TTL of an hour, and deletes them at the end if the server can. Its models are unloaded by its
// end.
package capability
