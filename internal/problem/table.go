// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// entry is a row of the table with its code.
type entry struct {
	code Code
	Row
}

// The conditions that show problems.
const (
	accepted    = "Accepted"
	pods        = "PodsReady"
	progressing = "Progressing"
	recording   = "Recording"
	probe       = "Ready of a RewardEnvironment"
	brokered    = "Ready and Stalled of a TinkerEndpoint"
	failed      = "Failed"
	noCondition = "none: an attempt ends for it"
)

// The reasons that several codes share, and that are not codes themselves.
const (
	environmentNotUsable = "EnvironmentNotUsable"
	sourceNotUsable      = "SourceNotUsable"
	endpointNotUsable    = "EndpointNotUsable"
	specInvalid          = "SpecInvalid"
	unavailable          = "Unavailable"
	objectNotFound       = "ObjectNotFound"
	podInvalid           = "PodInvalid"
	endpointBusy         = "EndpointBusy"
	inputBlocked         = "InputBlocked"
	trackerRefused       = "TrackerRefused"
	trackerUnreachable   = "TrackerUnreachable"
	recordsDropped       = "RecordsDropped"
	rejected             = "Rejected"
	notStarted           = "NotStarted"
	warmPoolNotUsable    = "WarmPoolNotUsable"
)

// part is a section of the troubleshooting page.
type part struct {
	title, conditions string
	entries           []entry
}

// table has the problems in the order of the troubleshooting page, in which a run meets them.
var table = []part{
	{"The spec and its objects", accepted, specTable},
	{"The probe of an environment", probe, probeTable},
	{"Pods", pods, podTable},
	{"The endpoint", progressing, endpointTable},
	{"The broker of a TinkerEndpoint", progressing, brokerTable},
	{"TinkerEndpoints", brokered, platformTable},
	{"Data and stores", progressing, storeTable},
	{"Trackers", recording, trackingTable},
	{"The end of a run", failed, endTable},
	{"The end of an attempt", noCondition, attemptTable},
}

// endTable has the problems because of which runs end.
var endTable = []entry{
	{NoUsableCheckpoint, Row{
		Conditions: "Progressing, Failed", Endpoint: true, Next: AwaitRepair,
		Means: "The endpoint has deleted or refuses every saved state.",
		Repair: "Make the checkpoint readable that the message names. If the run has failed, create another run, " +
			"if possible with initFrom."}},
	{Diverged, Row{
		Conditions: failed,
		Means:      "The loss or its gradient was not finite, or the endpoint sampled no valid tokens.",
		Repair: "Look at the curves: kubectl tinker metrics $(run) --plot reward,loss. Lower the learning rate " +
			"of the next run."}},
	{MetricNotFinite, Row{
		Conditions: "Stalled", Reason: string(Diverged),
		Fact:   "A metric of the run was not a finite number.",
		Repair: "Create another run from a checkpoint, with a lower learning rate."}},
	{NoProgress, Row{
		Conditions: failed, Reason: string(RestartsExhausted),
		Means: "failurePolicy.maxRestarts is used up, with the last three crashes at the same step.",
		Repair: "Read the log of the learner: kubectl tinker logs $(run). Repair the cause, and run: kubectl " +
			"tinker retry $(run)"}},
	{RestartsExhausted, Row{
		Conditions: failed,
		Means:      "failurePolicy.maxRestarts is used up without a new checkpoint.",
		Repair:     "Repair the cause that the attempts name, and run: kubectl tinker retry $(run)"}},
	{ConfigRejected, Row{
		Conditions: failed, Reason: rejected,
		Means:  "The learner refused its configuration.",
		Repair: "Correct the field that the message names, and create the run again."}},
	{StartRejected, Row{
		Conditions: failed, Reason: rejected,
		Means:  "The learner could not read what its pod was given.",
		Repair: "Correct the cause that the message names, and run: kubectl tinker retry $(run)"}},
	{EnvironmentsRejected, Row{
		Conditions: failed, Reason: rejected,
		Means:  "The environments cannot make a batch.",
		Repair: "Correct the field that the message names, and create the run again."}},
	{Untrainable, Row{
		Conditions: failed, Reason: rejected,
		Means: "No group of a step can be trained on.",
		Repair: "Correct the cause for which the groups are refused, and run: kubectl tinker retry $(run). If " +
			"prompts exceed the model's context, shorten them or choose shorter rows."}},
	{DataRejected, Row{
		Conditions: failed, Reason: rejected,
		Means:  "The learner refused its data.",
		Repair: "Correct the cause that the message names, and create the run again."}},
}

// attemptTable has the endings of attempts that are not problems.
var attemptTable = []entry{
	{BudgetReached, Row{
		Conditions: "Suspended",
		Means:      "A limit of spec.budget is reached. The run is suspended at a checkpoint.",
		Repair:     "Raise the limit. The run continues from its newest checkpoint."}},
	{SettingsChanged, Row{
		Conditions: noCondition, Next: AtOnce,
		Means: "The settings were changed before a first step was committed. The next attempt has the new " +
			"values."}},
	{StopRequested, Row{
		Conditions: noCondition,
		Means:      "The learner stopped at a saved state, because the run was suspended or deleted."}},
	{Superseded, Row{
		Conditions: noCondition,
		Means:      "A higher attempt has taken over. This attempt stopped."}},
}

// rows are the rows of the table by code.
var rows = index()

func index() map[Code]Row {
	all := map[Code]Row{}
	for _, part := range table {
		for _, e := range part.entries {
			all[e.code] = e.Row
		}
	}
	return all
}
