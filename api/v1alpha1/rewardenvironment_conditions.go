// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of a RewardEnvironment's condition Ready, besides SpecInvalid.
const (
	// ReasonProbed says that the probe found tasks and graded its canary.
	ReasonProbed = "Probed"
	// ReasonProbing says that the probe runs.
	ReasonProbing = "Probing"
	// ReasonProbeFailed says that the probe ended without a result, and will be repeated.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonProbeNotStarting says that the probe's pod cannot start.
	ReasonProbeNotStarting = "ProbeNotStarting"
	// ReasonUnavailable says that the environment or its judge failed, and will be probed again.
	ReasonUnavailable = "Unavailable"
	// ReasonDataInvalid says that the data cannot be read as the spec describes. The data is probed again.
	ReasonDataInvalid = "DataInvalid"
	// ReasonWarmPoolNotUsable says that the pods of programs cannot come from the warm pool that the environment names.
	// Conditions of runs also have the reason.
	ReasonWarmPoolNotUsable = "WarmPoolNotUsable"
)
