// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package codetests compares reward.tests with the grader of tinker-cookbook, on programs that are right, wrong, slow,
// crashing and hostile.
package codetests
