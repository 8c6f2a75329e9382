// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// platformTable has the problems of TinkerEndpoints, and of the runs that name one.
var platformTable = []entry{
	{EndpointNotFound, Row{
		Conditions: accepted, Reason: endpointNotUsable, NeedsAction: true,
		Fact: "The cluster lacks the TinkerEndpoint of tinker.endpointRef, or it is being deleted (%s).",
		Repair: "Have the TinkerEndpoint created again, or correct tinker.endpointRef before a first step is " +
			"committed."}},
	{EndpointForbidden, Row{
		Conditions: accepted, Reason: endpointNotUsable, NeedsAction: true,
		Fact: "The TinkerEndpoint of tinker.endpointRef does not allow the run (%s).",
		Repair: "Have spec.allowed of the TinkerEndpoint extended or the namespace labelled, or name another " +
			"endpoint or model."}},
	{EndpointsDisabled, Row{
		Conditions: accepted, Reason: endpointNotUsable, NeedsAction: true,
		Fact: "The operator of this namespace serves no TinkerEndpoint of that name (%s).",
		Repair: "Set the chart's value endpoints.enabled to true and, with watchNamespaces, list the endpoint in " +
			"endpoints.names."}},
	{ServerKeyRefused, Row{
		Conditions: brokered, Reason: string(KeyRefused), NeedsAction: true,
		Fact:   "The server refuses the API key of the endpoint (%s).",
		Repair: "Put a valid key into the Secret of spec.apiKeySecretKeyRef in the operator's namespace."}},
	{EndpointObjectNotFound, Row{
		Conditions: brokered, Reason: string(SecretNotFound), NeedsAction: true,
		Fact: "The operator's namespace lacks a Secret, a ConfigMap or a key that the endpoint names (%s).",
		Repair: "Create it there, or correct spec.apiKeySecretKeyRef, spec.caBundleConfigMapKeyRef or " +
			"spec.clientCertificateSecretRef."}},
	{EndpointPricesInvalid, Row{
		Conditions: brokered, Reason: string(EndpointPricesInvalid), NeedsAction: true,
		Fact:   "The prices of the endpoint cannot be read (%s). The broker uses the earlier ones.",
		Repair: "Correct the ConfigMap of spec.prices.configMapKeyRef in the operator's namespace."}},
	{EndpointInvalid, Row{
		Conditions: brokered, Reason: specInvalid, NeedsAction: true,
		Fact:   "The spec of the endpoint is not valid (%s).",
		Repair: "Correct the field that the message names."}},
	{BrokerUnavailable, Row{
		Conditions: brokered, NeedsAction: true, Grace: true,
		Fact:   "No pod of the broker serves (%s).",
		Repair: "Look at the broker's pods in the operator's namespace, which have the endpoint's name."}},
	{RecordsFailed, Row{
		Conditions: brokered, NeedsAction: true,
		Fact: "The broker cannot write its records, and serves no requests (%s).",
		Repair: "Make room on the volume of the broker's PersistentVolumeClaim in the operator's namespace, or " +
			"repair it."}},
	{ServerUnreachable, Row{
		Conditions: brokered, Reason: string(EndpointUnreachable), NeedsAction: true,
		Fact:   "The server of the endpoint does not answer the broker (%s).",
		Repair: "Check spec.baseURL, spec.proxyURL and the network of the operator's namespace."}},
	{ServerCheckRefused, Row{
		Conditions: "Checked of a TinkerEndpoint", Reason: string(CheckRefused), NeedsAction: true,
		Fact: "The server refuses the capability check of the broker (%s).",
		Repair: "Repair the server, or offer the model there. To permit only some models, list them in " +
			"spec.allowed.models."}},
}
