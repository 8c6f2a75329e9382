// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// brokerTable has the problems of runs at the broker of a TinkerEndpoint.
var brokerTable = []entry{
	{EndpointKeyRefused, Row{
		Conditions: progressing, Reason: string(EndpointFailing), Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "The endpoint refuses the API key of the TinkerEndpoint.",
		Repair: "Put a valid key into the Secret of the TinkerEndpoint, in the operator's namespace."}},
	{EndpointBudgetReached, Row{
		Conditions: progressing, Reason: string(PaymentRequired), Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "A budget of the TinkerEndpoint is used up.",
		Repair: "Raise the budget in the TinkerEndpoint, or wait until its next period begins."}},
	{TokenRefused, Row{
		Conditions: progressing, Reason: string(KeyRefused), Endpoint: true, NeedsAction: true, Grace: true, Retry: Always,
		Fact: "The broker of the TinkerEndpoint does not know the token of the run.",
		Means: "The broker does not know the token of the run: it lacks the newest settings, or the " +
			"TinkerEndpoint no longer permits the run.",
		Repair: "Check that the TinkerEndpoint permits the namespace of the run. Read the log of its broker."}},
	{ObjectNotOwned, Row{
		Conditions: progressing, Reason: string(NoUsableCheckpoint), Endpoint: true, NeedsAction: true, Retry: Always,
		Next:   AwaitRepair,
		Fact:   "The broker knows no such object of the run.",
		Means:  "A session, model, result or checkpoint does not exist, or belongs to another run.",
		Repair: "Add the checkpoint to spec.readableCheckpoints of the TinkerEndpoint, or name another one."}},
	{RouteRefused, Row{
		Conditions: progressing, Reason: string(UnsupportedByEndpoint), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The broker of the TinkerEndpoint does not pass a request that the run needs.",
		Repair: "Change the setting that needs the request before a first step is committed."}},
	{RequestInvalid, Row{
		Conditions: progressing, Reason: string(EndpointFailing), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The broker of the TinkerEndpoint refuses a request as ambiguous.",
		Repair: "Correct the program that sent the request. If this project made the program, report the defect."}},
	{ModelRefused, Row{
		Conditions: progressing, Reason: string(ModelUnknown), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The TinkerEndpoint does not permit a model that the run needs.",
		Repair: "Add the model to spec.allowed.models of the TinkerEndpoint, or choose another model.name."}},
	{CheckRefused, Row{
		Conditions: progressing, Reason: string(UnsupportedByEndpoint), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next: AwaitRepair,
		Fact: "The server refuses the capability check of the broker with the model of the run.",
		Repair: "Look at the condition Checked of the TinkerEndpoint, and have its server repaired. If the " +
			"server lacks the model, choose another model.name."}},
	{BrokerDraining, Row{
		Conditions: progressing, Reason: string(EndpointUnreachable), Endpoint: true, Retry: Always,
		Fact:   "No broker of the TinkerEndpoint serves.",
		Means:  "The broker of the TinkerEndpoint is being replaced, for at most 15 seconds.",
		Repair: "If it lasts, look at the broker's pods in the operator's namespace."}},
	{RecordsBlocked, Row{
		Conditions: progressing, Reason: string(EndpointFailing), Endpoint: true, NeedsAction: true, Grace: true,
		Retry:  Always,
		Fact:   "The broker of the TinkerEndpoint cannot write its records.",
		Repair: "Make room on the volume of the broker, and read its log."}},
}
