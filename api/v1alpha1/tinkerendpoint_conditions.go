// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionChecked says whether the broker of a TinkerEndpoint has checked the features that runs have asked for.
const ConditionChecked = "Checked"

// Reasons of the condition Checked of a TinkerEndpoint.
const (
	// ReasonCheckRefused says that the server refuses the check of a model.
	ReasonCheckRefused = "CheckRefused"
	// ReasonChecked says that every check that runs asked for has ended.
	ReasonChecked = "Checked"
	// ReasonChecking says that a check is in progress.
	ReasonChecking = "Checking"
	// ReasonNotAsked says that no run has asked for a check.
	ReasonNotAsked = "NotAsked"
)

// Reasons of the conditions Ready and Stalled of a TinkerEndpoint, besides SpecInvalid, KeyRefused, EndpointUnreachable
// and EndpointNotTinker.
const (
	// ReasonServing says that the broker serves the runs of the endpoint.
	ReasonServing = "Serving"
	// ReasonBrokerStarting says that the broker starts, or takes over from another replica.
	ReasonBrokerStarting = "BrokerStarting"
	// ReasonSecretNotFound says that the operator's namespace lacks an object or a key that the endpoint names.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonEndpointPricesInvalid says that the prices of the endpoint cannot be read.
	ReasonEndpointPricesInvalid = "EndpointPricesInvalid"
	// ReasonBrokerUnavailable says that no pod of the broker serves.
	ReasonBrokerUnavailable = "BrokerUnavailable"
	// ReasonRecordsFailed says that the broker cannot write its records.
	ReasonRecordsFailed = "RecordsFailed"
)
