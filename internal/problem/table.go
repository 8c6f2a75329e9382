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
	failed      = "Failed"
	noCondition = "none: an attempt ends for it"
)

// unavailable is the reason of an environment that is probed again.
const unavailable = "Unavailable"

// table has the problems in the order of the troubleshooting page: in which a run meets them.
var table = [][]entry{specTable, probeTable, podTable, endpointTable, storeTable, trackingTable, endTable,
	attemptTable}

// specTable has the problems of the spec and of what it refers to.
var specTable = []entry{
	{"EnvironmentNotFound", Row{
		Conditions: accepted, Means: "The namespace has no RewardEnvironment of that name.",
		Repair: "Apply the RewardEnvironment that the message names. The run then starts by itself."}},
	{"EnvironmentNotReady", Row{
		Conditions: accepted, Means: "The probe of a RewardEnvironment has not succeeded.",
		Repair: "Look at the environment: kubectl describe rewardenvironments. The run starts once its probe succeeds."}},
	{"SplitNotFound", Row{
		Conditions: accepted, Means: "The environment has no split of that name.",
		Repair: "Correct the name of the split in the spec. The message lists those that exist."}},
	{"SharedServersDisabled", Row{
		Conditions: accepted,
		Means:      "An environment has ors.server.shared, and the operator may not run Deployments.",
		Repair:     "Set the chart's value environmentServers.shared."}},
	{EnvironmentUnavailable, Row{
		Conditions: "Accepted, Progressing", NeedsAction: true,
		Means:  "The server of an environment takes no sessions at any worker. The message has its words.",
		Fact:   "The run waits for the server of environment %s, which takes no sessions at any worker.",
		Repair: "Repair the server; the condition Accepted has its words.", Retry: Always}},
	{"InitFromNotFound", Row{
		Conditions: accepted, Means: "The run or the checkpoint that initFrom names does not exist.",
		Repair: "Correct initFrom, or wait until the run that it names exists."}},
	{"InitFromNotReady", Row{
		Conditions: accepted, Means: "The run that initFrom names has not saved the checkpoint yet, or is not complete and " +
			"initFrom.runRef.when is Complete.",
		Repair: "Wait until the run that initFrom names has saved the checkpoint or is complete, as the message " +
			"says. If that run has failed, retry it, or set initFrom.runRef.when to Available."}},
	{"PriorityClassNotFound", Row{
		Conditions: accepted, Means: "The priority class of a run that Kueue admits does not exist.",
		Repair: "Create the class, or correct the name. The message says where the name stands.", NeedsAction: true}},
	{"Queued", Row{
		Conditions: pods + ", " + progressing, Means: "Kueue has not admitted the run. The message has Kueue's words.",
		Repair: "Nothing. To see the queue: kubectl describe localqueue."}},
	{"Evicted", Row{
		Conditions: pods + ", " + progressing,
		Means:      "Kueue has evicted the run. The learner saves its state, and the run waits in its queue again.",
		Repair:     "Nothing. To see why: kubectl describe workload; status.queue has the name."}},
	{"RoleNotFound", Row{
		Conditions: accepted,
		Means: "algorithm.roles names a role that no environment has, or grouping: Episode finds one trajectory an " +
			"episode.",
		Repair: "Correct algorithm.roles or algorithm.grouping, as the message says."}},
	{"PromptsDiffer", Row{
		Conditions: accepted,
		Means: "sampling.sharedPrompt is set for an environment that has an ors server, also where an evaluation " +
			"inherits it.",
		Repair: "Set sampling.sharedPrompt to false for the environment that the message names."}},
	{"PriceUnknown", Row{
		Conditions: accepted, Means: "budget.usd is set, and the price of a model is not known.",
		Repair: "Set the price that the message names in budget.prices."}},
	{"StatusRestored", Row{
		Conditions: "Accepted, Ready",
		Means:      "The status belongs to another run, from a backup: this run has made no attempt.",
		Repair: "Set spec.resumeFrom.uid to the uid that the message names. To begin anew, create the run without a " +
			"status."}},
	{ResumeRefused, Row{
		Conditions: accepted, Next: AtOnce,
		Means: "The run of resumeFrom has no state, had other settings, or is continued by another run already.",
		Repair: "Correct spec.resumeFrom, or what the message names. Nothing is tried until the spec changes; an " +
			"increase of retry is a change."}},
	{SettingsDiffer, Row{
		Conditions: accepted, Next: AtOnce,
		Means: "A step was committed in the moment in which what decides the weights was changed.",
		Repair: "Restore the fields that the message names, and the run continues. Put the new values into another " +
			"run."}},
	{UnsupportedByFormat, Row{
		Conditions: "Accepted, Progressing", NeedsAction: true, Retry: Always,
		Fact:  "The format of the run's model cannot express a prompt (%s).",
		Means: "The format of model.renderer cannot express a prompt, such as tools that it cannot declare.",
		Repair: "Until a first step is committed, change environments[].environmentRef or model.renderer of the run, or " +
			"give the environment a dialect of calls; a change of a RewardEnvironment alone concerns later runs. A server " +
			"that gives other prompts and tools is asked again within a minute."}},
	{ModelUnknown, Row{
		Conditions: "Accepted, Progressing", Endpoint: true, NeedsAction: true, Retry: AWhile, Next: AwaitRepair,
		Fact: "The run waits for a model that the endpoint does not offer.",
		Means: "Accepted: renderer or tokenizer of the model are not known. Progressing: the endpoint does not offer " +
			"the model of the run, of a judge, or of the reference of the KL penalty.",
		Repair: "Serve the model at the endpoint. Until a first step is committed, another model.name, " +
			"algorithm.kl.reference.model or tinker.baseURL can be chosen. A model that is not known needs model.renderer " +
			"and model.tokenizer."}},
	{UnsupportedByEndpoint, Row{
		Conditions: "Accepted, Progressing", Endpoint: true, Next: AwaitRepair,
		Fact:  "The endpoint does not support a setting of the spec.",
		Means: "The endpoint ignores or refuses a setting of the spec, or the context of the model is too short there.",
		Repair: "Repair the endpoint, or change the setting that the message names. A run that has failed needs " +
			"kubectl tinker retry $(run) then."}},
	{OptimizerNotRestored, Row{
		Conditions: "Accepted, Progressing", Endpoint: true, Next: AwaitRepair,
		Fact:  "The run waits until the endpoint restores the optimizer, or failurePolicy.requireOptimizerState is false.",
		Means: "The endpoint loses Adam's state, which failurePolicy.requireOptimizerState forbids.",
		Repair: "Set failurePolicy.requireOptimizerState to false, or repair the endpoint. A run that has failed needs " +
			"kubectl tinker retry $(run) then."}},
}

// probeTable has the problems of a RewardEnvironment.
var probeTable = []entry{
	{"ProbeNotStarting", Row{
		Conditions: probe, Means: "The pod of the probe cannot start. The message has the words of Kubernetes.",
		Repair: "Correct the pod's fields of the RewardEnvironment, or what the message names."}},
	{"ProbeFailed", Row{
		Conditions: probe, Means: "The probe ended without a result, and is repeated.",
		Repair: "Wait. If the probe fails again and again, read the log of its pod."}},
	{EnvironmentFault, Row{
		Conditions: probe, Reason: unavailable, Means: "The environment failed, and is probed again.",
		Repair: "Repair the server that the message names, or the program."}},
	{JudgeFault, Row{
		Conditions: probe, Reason: unavailable, Means: "A judge failed, and is asked again.",
		Repair: "Repair the judge that the message names."}},
	{NoTasks, Row{
		Conditions: probe, Reason: unavailable, Means: "No split has a task. The environment is probed again.",
		Repair: "Add tasks to the data or the server, or correct the splits."}},
	{CanaryFailed, Row{
		Conditions: probe, Reason: unavailable,
		Means:  "A right answer does not earn more than a wrong one. The environment is probed again.",
		Repair: "Correct the reward of the RewardEnvironment, or the answers of the data."}},
	{Invalid, Row{
		Conditions: probe, Means: "The definition cannot work as it stands.",
		Repair: "Correct the field that the message names."}},
	{DataInvalid, Row{
		Conditions: probe, Means: "The data cannot be read as the spec describes them. They are probed again.",
		Repair: "Correct the data, or the field that the message names."}},
}

// podTable has the problems of pods and of what Kubernetes refuses.
var podTable = []entry{
	{"SecretNotFound", Row{
		Conditions: pods, Means: "The Secret with the API key is missing.",
		Repair: "Create the Secret. The pod then starts by itself."}},
	{"SecretKeyNotFound", Row{
		Conditions: pods, Means: "The Secret with the API key lacks the key.",
		Repair: "Add the key to the Secret. The pod then starts by itself."}},
	{"ConfigNotFound", Row{
		Conditions: pods,
		Means: "A ConfigMap, Secret or volume cannot be mounted, or a variable cannot be set. The message has the " +
			"kubelet's words.",
		Repair: "Create what the message names, or correct the field that it names. The pod then starts by itself."}},
	{"Unschedulable", Row{
		Conditions: pods, Means: "No node fits, or a PersistentVolumeClaim does not exist.",
		Repair: "Add a node that fits, create the claim, or correct the pod's fields of the spec."}},
	{"ImagePullFailed", Row{
		Conditions: pods,
		Means: "The image cannot be pulled. The pod is replaced every 45 seconds, since the kubelet would try again " +
			"ever more rarely.",
		Repair: "Correct the image, imagePullSecrets, or the registry. The run then continues within a minute, and " +
			"nothing counts against maxRestarts."}},
	{"ContainerRefused", Row{
		Conditions: pods, Means: "The kubelet cannot make the container from what the spec says.",
		Repair: "Correct the pod's fields of the spec, as the message says."}},
	{"InitContainerFailed", Row{
		Conditions: pods,
		Means:      "A container of initContainers failed, or a sidecar among them fails again and again.",
		Repair: "Correct the container that the message names, or what it needs. A learner is tried again every 45 " +
			"seconds, and nothing counts against maxRestarts."}},
	{"CreateRefused", Row{
		Conditions: pods,
		Means: "A quota, an admission policy, a webhook that does not answer, or a missing service account or priority " +
			"class refuses the Job or its pods. The message has the API server's words.",
		Repair: "Correct the pod's fields of the spec, or what refuses them. The run then continues within two " +
			"minutes."}},
	{SpecRefused, Row{
		Conditions: "Accepted, PodsReady", Next: AtOnce,
		Means:  "The Job is not valid, because of podOverrides.",
		Repair: "Correct the field that the message names. Nothing is tried until the spec changes."}},
	{JobSuspended, Row{
		Conditions: pods, Next: AtOnce,
		Means: "Another controller, such as a queue, has suspended the Job. This counts against no deadline and as no " +
			"restart.",
		Repair: "Wait: the run continues once the queue that suspended the Job resumes it."}},
	{"WorkersCrashed", Row{
		Conditions: pods,
		Means: "Workers end instead of running. The message names the newest such pod, its exit code and the last line " +
			"of its log.",
		Repair: "Read the workers' log: kubectl tinker logs $(run) --role rollout"}},
	{"WorkersMissing", Row{
		Conditions: pods,
		Means: "Workers are missing or not ready. The message names a worker that runs and that the learner has never " +
			"answered.",
		Repair: "Let NetworkPolicies admit the run's workers to its learner. Look at the events and the log of the " +
			"pod."}},
	{"ScaledToZero", Row{
		Conditions: pods, Means: "rollouts.workers is 0.",
		Repair: "Add workers: kubectl tinker scale $(run) --replicas 2"}},
	{"VersionRefused", Row{
		Conditions: pods, Means: "Workers of another version of the operator do not understand the learner.",
		Repair: "Wait: the workers are replaced."}},
	{"Unreachable", Row{
		Conditions: pods,
		Means: "The learner runs, and the operator has no usable reply of it: because of a NetworkPolicy, its node, or " +
			"a reply that is too long. The run may be training meanwhile.",
		Repair: "Let NetworkPolicies admit the operator to the run's pods. Look at the node and the log of the " +
			"learner's pod."}},
	{"Draining", Row{
		Conditions: "Suspended",
		Means:      "The learner stops at a saved state. If the node of its pod is silent, the message names the node.",
		Repair:     "Wait. Repair a silent node, or delete its Node object."}},
	{"Suspended", Row{
		Conditions: "Suspended", Means: "The run is suspended at its newest checkpoint.",
		Repair: "Resume it: kubectl tinker resume $(run)"}},
	{"NamespaceTerminating", Row{
		Conditions: progressing,
		Means:      "The namespace is being deleted. The run gets no attempt, and its Jobs are deleted."}},
}

// endpointTable has the problems at the endpoint, or on the way to it.
var endpointTable = []entry{
	{KeyRefused, Row{
		Conditions: "Progressing, PodsReady", Endpoint: true, NeedsAction: true, Retry: AWhile, Next: AwaitRepair,
		Fact: "The endpoint refuses the API key.",
		Means: "The endpoint refuses the API key, or the key is empty. Where only some workers are refused, the run " +
			"continues with the others.",
		Repair: "Put a valid key into the Secret of tinker.apiKeySecretKeyRef, or correct tinker.apiKeySecretKeyRef."}},
	{EndpointUnreachable, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always,
		Fact: "The endpoint cannot be reached.",
		Means: "tinker.baseURL does not answer. The run is Stalled after stalledAfterSeconds. Nothing is " +
			"lost.",
		Repair: "Check tinker.baseURL and the network."}},
	{EndpointNotTinker, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: AWhile, Next: AwaitRepair,
		Fact: "What answers at tinker.baseURL is not the Tinker API.",
		Means: "What answers at tinker.baseURL is not the Tinker API, or its certificate is not accepted. The message " +
			"quotes the first request and its answer.",
		Repair: "Correct tinker.baseURL, or give the authority of its certificate by tinker.caBundleConfigMapKeyRef, as " +
			"the message says. tinker.baseURL can be changed until a first step is committed."}},
	{EndpointFailing, Row{
		Conditions: progressing, Endpoint: true, Retry: Always,
		Fact:   "The endpoint answers with errors of its own.",
		Repair: "Look at the log of the endpoint. The run continues by itself once the endpoint answers."}},
	{SamplingRefused, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always, Reason: string(EndpointFailing),
		Fact:   "The endpoint refuses to sample.",
		Repair: "Correct what its answer names, at the server or in the run."}},
	{RequestTooLarge, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "The endpoint, or a proxy before it, rejects a request with one training sequence as too large.",
		Repair: "Raise the limit of request bodies at the endpoint or the ingress before it."}},
	{Throttled, Row{
		Conditions: progressing, Endpoint: true, Continues: true, Retry: Always,
		Fact: "The endpoint answers 429: its rate limit is reached, and the run continues as fast as that allows."}},
	{PausedCapacity, Row{
		Conditions: progressing, Endpoint: true, Retry: Always,
		Fact:   "The endpoint has paused the model because it lacks capacity.",
		Repair: "Wait. The pause does not count against maxRestarts."}},
	{PausedRateLimit, Row{
		Conditions: progressing, Endpoint: true, Retry: Always,
		Fact:   "The endpoint has paused the model at a rate limit.",
		Repair: "Wait. The pause does not count against maxRestarts."}},
	{PaymentRequired, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always,
		Fact: "The endpoint answers 402.", Repair: "Check the account's billing."}},
	{SettingsRefused, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always, Next: AwaitRepair,
		Reason: string(UnsupportedByEndpoint),
		Fact:   "The endpoint refuses a setting of the run.",
		Repair: "Correct it at the endpoint, or in the spec, which may be changed until a first step is committed."}},
	{DataRefused, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always, Next: AwaitRepair,
		Reason: string(UnsupportedByEndpoint),
		Fact:   "The endpoint refuses all training data.",
		Repair: "Correct it at the endpoint, or change the loss or the model in the spec, which is possible until a " +
			"first step is committed."}},
	{ContextTooShort, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: AWhile, Next: AwaitRepair,
		Reason: string(UnsupportedByEndpoint),
		Fact:   "The run waits until its samples fit into the model's context.",
		Repair: "Change the limits that the message names, or serve the model with a longer context."}},
	{CheckpointMissing, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always, Next: AwaitRepair,
		Reason: string(NoUsableCheckpoint),
		Fact:   "The endpoint cannot read a checkpoint that the spec names.",
		Repair: "Make the checkpoint readable, or name another, which is possible until a first step is committed."}},
}

// storeTable has the problems of what a run reads and writes besides the endpoint.
var storeTable = []entry{
	{ArtifactsBlocked, Row{
		Conditions: "Progressing, Recording", NeedsAction: true, Retry: Always,
		Fact: "The learner cannot write its files (%s).", Means: "The learner cannot write its files. The run makes at " +
			"most one further step meanwhile.",
		Repair: "Repair the store of spec.artifacts."}},
	{TokenizerBlocked, Row{
		Conditions: progressing, NeedsAction: true, Retry: Always,
		Fact:   "The tokenizer cannot be loaded (%s).",
		Means:  "The tokenizer is missing, has changed, is no supported tokenizer, or is not readable for its HF_TOKEN.",
		Repair: "Check the source of model.tokenizer and the network."}},
	{DataBlocked, Row{
		Conditions: progressing, NeedsAction: true, Retry: Always,
		Fact:   "A worker cannot read its data (%s).",
		Means:  "No worker can read its data: they have changed, are missing, or their server refuses.",
		Repair: "Repair the data."}},
	{JudgeBlocked, Row{
		Conditions: progressing, NeedsAction: true, Retry: Always,
		Fact:  "A worker cannot ask a judge (%s). No reply is scored without it.",
		Means: "A judge is down, or refuses its key or model. No reply is scored meanwhile.",
		Repair: "Repair the judge, which is asked again within a minute. Another address or model of a judge counts for " +
			"runs that are created later."}},
}

// trackingTable has the problems of the services that show a run's curves. The run trains all the same.
var trackingTable = []entry{
	{Connecting, Row{
		Conditions: recording, Continues: true, Means: "No learner has reached the service yet.",
		Repair: "Wait."}},
	{KeyMissing, Row{
		Conditions: recording, Continues: true, Means: "The Secret with the service's key, or the key in it, is missing.",
		Repair: "Create the Secret, or the key in it. Nothing needs to be restarted."}},
	{TrackerKeyRefused, Row{
		Conditions: recording, Continues: true, Reason: string(KeyRefused), Means: "The service refuses the key.",
		Repair: "Put a valid key into the Secret of the service in spec.tracking. Nothing needs to be restarted."}},
	{PermissionDenied, Row{
		Conditions: recording, Continues: true, Means: "The user of the key may not write to the project.",
		Repair: "Give the user the right to write to the project, or correct entity and project."}},
	{ServiceNotFound, Row{
		Conditions: recording, Continues: true,
		Means:  "What answers at the address is not the service, or the service has no such entity.",
		Repair: "Correct baseURL or entity of the service in spec.tracking."}},
	{ServiceUnreachable, Row{
		Conditions: recording, Continues: true, Means: "The service does not answer.",
		Repair: "Correct baseURL, or repair the network. A proxy is given by HTTPS_PROXY in env of " +
			"podOverrides[target=Learner]."}},
	{ServiceFailing, Row{
		Conditions: recording, Continues: true, Means: "The service answers with errors of its own, or asks to slow down.",
		Repair: "Wait."}},
	{StepsDropped, Row{
		Conditions: recording, Continues: true, Means: "The learner had no room for the steps that wait for the service.",
		Repair: "Give the run spec.artifacts."}},
	{RolloutsDropped, Row{
		Conditions: recording, Continues: true, Means: "The learner had no room for rollouts that wait for the " +
			"service, or the " +
			"service refused rollouts.",
		Repair: "Give the run spec.artifacts."}},
}

// endTable has the reasons for which runs end.
var endTable = []entry{
	{NoUsableCheckpoint, Row{
		Conditions: "Progressing, Failed", Endpoint: true, Next: AwaitRepair,
		Means: "Failed: every saved state is deleted or refused. Progressing: a checkpoint of the spec cannot be read.",
		Repair: "Make the checkpoint readable that the message names. If the run has failed, create another run, if " +
			"possible with initFrom."}},
	{Diverged, Row{
		Conditions: "Stalled, Failed",
		Means:      "The loss or its gradient was not finite, or the endpoint sampled no valid tokens.",
		Repair: "Look at the curves: kubectl tinker metrics $(run) --plot reward,loss. Lower the learning rate of the " +
			"next run."}},
	{"NoProgress", Row{
		Conditions: failed,
		Means:      "failurePolicy.maxRestarts is used up, and the last three crashes were at the same step.",
		Repair: "Read the learner's log, since the step itself ends it: kubectl tinker logs $(run). Then: kubectl tinker " +
			"retry $(run)"}},
	{"RestartsExhausted", Row{
		Conditions: failed, Means: "failurePolicy.maxRestarts is used up without a new checkpoint.",
		Repair: "Repair the cause, which the attempts name. Then: kubectl tinker retry $(run)"}},
	{ConfigRejected, Row{
		Conditions: failed, Means: "The learner refused its configuration.",
		Repair: "Correct what the message names and create the run again."}},
	{StartRejected, Row{
		Conditions: failed, Reason: string(ConfigRejected), Means: "The learner cannot start with what its pod was given.",
		Repair: "Correct what the message names, then: kubectl tinker retry $(run)"}},
	{EnvironmentsRejected, Row{
		Conditions: failed, Reason: string(ConfigRejected), Means: "The environments cannot make a batch.",
		Repair: "Correct what the message names and create the run again."}},
	{Untrainable, Row{
		Conditions: failed, Reason: string(DataRejected), Means: "No group of a step can be trained on.",
		Repair: "Correct what the groups are refused for, then: kubectl tinker retry $(run)"}},
	{DataRejected, Row{
		Conditions: failed, Means: "The learner refused its data.",
		Repair: "Correct what the message names and create the run again."}},
}

// attemptTable has the endings of attempts that somebody asked for.
var attemptTable = []entry{
	{BudgetReached, Row{
		Conditions: "Suspended", Means: "A limit of spec.budget is reached. The run is suspended at a checkpoint.",
		Repair: "Raise the limit. The run continues from its newest checkpoint."}},
	{SettingsChanged, Row{
		Conditions: noCondition, Next: AtOnce,
		Means: "What decides the weights was changed before a first step was committed. The next attempt has the new " +
			"values."}},
	{StopRequested, Row{
		Conditions: noCondition, Means: "The learner stopped at a saved state, because the run was suspended or deleted."}},
	{Superseded, Row{
		Conditions: noCondition, Means: "A higher attempt has taken over. This one stopped."}},
}

// rows are the rows of the table by code.
var rows = index()

func index() map[Code]Row {
	all := map[Code]Row{}
	for _, part := range table {
		for _, e := range part {
			all[e.code] = e.Row
		}
	}
	return all
}
