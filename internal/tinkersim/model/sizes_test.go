// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package model

const (
	// companySize is the number of requests of the test of batch independence.
	companySize = 256
	// learningSteps is how long the learning tests go on, and learningGoal what they must reach.
	learningSteps = 40
	learningGoal  = 0.75
	// heldQuestions is the number of questions that pass@1 is measured on.
	heldQuestions = 768
)
