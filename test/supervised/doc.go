// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervised compares supervised training and distillation with tinker-cookbook as it comes from the package
// index, in two versions: the supervised examples of its renderers, the weights after 20 steps of supervised/train.py
// at a simulator, and the advantages of distillation/train_on_policy.py. It also prints the CPU time of a supervised
// step beside the time of the cookbook's step.
//
// The tests check that the examples and steps recorded in the testdata of internal/supervised and internal/rl/distill,
// which the unit tests read, equal the packages' output of today. With -update, the tests write the records.
package supervised
