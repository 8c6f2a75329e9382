// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// specTable has the problems of the spec and of the objects that it refers to.
var specTable = []entry{
	{EnvironmentNotFound, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "The namespace lacks a RewardEnvironment that the run uses (%s).",
		Repair: "Create the RewardEnvironment, or correct environmentRef."}},
	{EnvironmentProbing, Row{
		Conditions: accepted, Reason: environmentNotUsable,
		Fact:   "A RewardEnvironment is being probed (%s).",
		Repair: "Wait."}},
	{EnvironmentNotReady, Row{
		Conditions: accepted, Reason: environmentNotUsable,
		Fact:   "The probe of a RewardEnvironment failed and is repeated (%s).",
		Repair: "Repair the environment: kubectl describe rewardenvironments"}},
	{EnvironmentInvalid, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "A RewardEnvironment is not valid (%s).",
		Repair: "Correct the RewardEnvironment or its data."}},
	{EnvironmentNotStarting, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true, Grace: true,
		Fact:   "The probe of a RewardEnvironment cannot start (%s).",
		Repair: "Repair the cause that the message names."}},
	{EnvironmentChanged, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "A RewardEnvironment has changed since the run started, and the run's files are deleted (%s).",
		Repair: "Restore the spec of the RewardEnvironment."}},
	{SplitNotFound, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "An environment lacks a split that the run uses (%s).",
		Repair: "Correct the splits in the spec."}},
	{PortsCollide, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "Two servers of environments have one port in the same pods (%s).",
		Repair: "Change one ors.server.port, or remove one from evaluation.environments."}},
	{SharedServersDisabled, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "ors.server.shared needs Deployments, which the operator may not create (%s).",
		Repair: "Set the chart's value environmentServers.shared to true, or remove ors.server.shared."}},
	{ProgramPodsDisabled, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact:   "execution.placement Pods needs Deployments, which the operator may not create (%s).",
		Repair: "Set the chart's value environmentServers.shared to true, or remove execution.placement."}},
	{WarmPoolsDisabled, Row{
		Conditions: accepted + ", " + probe, Reason: warmPoolNotUsable, NeedsAction: true,
		Fact: "execution.pods.warmPoolRef needs SandboxClaims, which the operator may not create (%s).",
		Repair: "Set the chart's values environmentServers.shared and environmentServers.warmPools to true, or " +
			"remove execution.pods.warmPoolRef."}},
	{WarmPoolsMissing, Row{
		Conditions: accepted + ", " + probe + ", " + pods, Reason: warmPoolNotUsable, NeedsAction: true,
		Fact: "execution.pods.warmPoolRef needs SandboxClaims, which the cluster does not serve (%s).",
		Repair: "Install agent-sandbox with its extensions (v0.5.6 or later), or remove " +
			"execution.pods.warmPoolRef."}},
	{WarmPoolNotFound, Row{
		Conditions: accepted + ", " + probe, Reason: warmPoolNotUsable, NeedsAction: true,
		Fact:   "The warm pool of an environment does not exist (%s).",
		Repair: "Create the object in the environment's namespace, or correct execution.pods.warmPoolRef."}},
	{WarmPoolUnfit, Row{
		Conditions: accepted + ", " + probe, Reason: warmPoolNotUsable, NeedsAction: true,
		Fact: "The pods of the warm pool cannot serve workers (%s).",
		Repair: "Correct the SandboxTemplate as docs/python.md describes it, and delete the pool's unclaimed " +
			"sandboxes."}},
	{ServersUnavailable, Row{
		Conditions: accepted, Reason: environmentNotUsable, NeedsAction: true,
		Fact: "The server of an environment takes no sessions (%s).",
		Repair: "Repair the server. For ors.server, read the log of the container environment-NAME in the " +
			"workers' pods."}},
	{ServersAuthorityUnknown, Row{
		Conditions: accepted + ", " + progressing, Reason: environmentNotUsable, NeedsAction: true, Retry: Always,
		Fact:   "The workers do not trust the authority of the certificate of an environment's server (%s).",
		Repair: trustAuthority + "podOverrides of the run, or in the chart's value pods."}},
	{EnvironmentUnavailable, Row{
		Conditions: progressing, Reason: environmentNotUsable, NeedsAction: true, Retry: Always,
		Fact:   "The server of an environment takes no sessions at any worker (%s).",
		Repair: "Repair the server. The condition Accepted quotes its answer."}},
	{InitFromNotFound, Row{
		Conditions: accepted, Reason: sourceNotUsable, NeedsAction: true,
		Fact:   "initFrom names a run or a checkpoint that does not exist (%s).",
		Repair: "Correct initFrom.runRef, or set initFrom.checkpoint."}},
	{InitFromNotReady, Row{
		Conditions: accepted, Reason: sourceNotUsable,
		Fact:   "The run of initFrom has not saved the checkpoint yet (%s).",
		Repair: "Wait."}},
	{InitFromNotComplete, Row{
		Conditions: accepted, Reason: sourceNotUsable,
		Fact:   "The run of initFrom is not complete yet, and initFrom.runRef.when is Complete (%s).",
		Repair: "Wait."}},
	{InitFromFailed, Row{
		Conditions: accepted, Reason: sourceNotUsable, NeedsAction: true,
		Fact:   "initFrom.runRef.when is Complete, and the run has failed (%s).",
		Repair: "Increase spec.retryGeneration of that run, or set initFrom.runRef.when to Available."}},
	{InitFromCycle, Row{
		Conditions: accepted, Reason: sourceNotUsable, NeedsAction: true,
		Fact:   "Runs wait for each other's checkpoints by initFrom.runRef (%s).",
		Repair: "Remove initFrom of one of them, or name another run or a checkpoint in it."}},
	{CursorUnknown, Row{
		Conditions: accepted, Reason: sourceNotUsable, NeedsAction: true,
		Fact:   "initFrom.data is Continue, and the checkpoint's name does not say which tasks led to it (%s).",
		Repair: "Name a checkpoint that a TrainingRun has saved, or set initFrom.data to Restart."}},
	{PriorityClassNotFound, Row{
		Conditions: accepted, Reason: objectNotFound, NeedsAction: true,
		Fact: "The run's priority class of Kueue cannot be read (%s).",
		Repair: "Create the class, or correct $(field). With watchNamespaces, set kueue.enabled of the chart to " +
			"true.", Field: "the label kueue.x-k8s.io/priority-class"}},
	{NotPlaced, Row{
		Conditions: accepted, Reason: "Unschedulable", NeedsAction: true,
		Fact:   "The pods of the run cannot be placed as Kueue admitted them (%s).",
		Repair: "Correct spec.podOverrides, the ResourceFlavor, or the permissions of the operator."}},
	{WorkloadRefused, Row{
		Conditions: pods + ", " + progressing, Reason: "CreateRefused", NeedsAction: true,
		Fact:   "The API server refuses the Workload by which Kueue admits the run (%s).",
		Repair: "Let the operator create Workloads, or repair the cause in the message."}},
	{Queued, Row{
		Conditions: pods + ", " + progressing,
		Fact:       "The run waits until Kueue admits it (%s).",
		Repair:     "Wait. To see the queue: kubectl describe localqueue"}},
	{Evicted, Row{
		Conditions: pods + ", " + progressing,
		Fact:       "Kueue has evicted the run (%s).",
		Repair:     "Wait. The run saves its state, and waits in its queue again."}},
	{StatusRestored, Row{
		Conditions: "Accepted, Ready", Reason: sourceNotUsable, NeedsAction: true,
		Fact:  "The status belongs to the former run %s.",
		Means: "The run was restored from a backup with a former run's status, and has made no attempt.",
		Repair: "To continue the former run, set spec.resumeFrom.uid to its uid. To begin anew, delete this run " +
			"and create it without a status."}},
	{ResumeRefused, Row{
		Conditions: accepted, Reason: sourceNotUsable, NeedsAction: true, Next: AtOnce,
		Fact:   "The run of resumeFrom cannot be continued (%s).",
		Means:  "The run of resumeFrom has no state, had other settings, or is continued by another run already.",
		Repair: "Correct spec.resumeFrom, or repair the cause and increase spec.retryGeneration."}},
	{RunFileUnreadable, Row{
		Conditions: accepted, Reason: sourceNotUsable, NeedsAction: true,
		Fact:   "The run file of an earlier attempt cannot be read (%s).",
		Repair: "Install the version of the operator that wrote it, or create another run with initFrom."}},
	{RunFileInvalid, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact:   "The spec does not make a valid run (%s).",
		Repair: "Correct the spec."}},
	{RoleNotFound, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact:   "algorithm.roles names a role that no environment has (%s).",
		Repair: "Correct the name, or remove the entry."}},
	{GroupingUnusable, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact: "algorithm.grouping Episode compares the trajectories of an episode, and the environment's " +
			"episodes have one (%s).",
		Repair: "Set algorithm.grouping to Trajectory or Step."}},
	{PromptsDiffer, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact:   "The episodes of a group share one prompt, which the environment's server or code may change (%s).",
		Repair: "Set sampling.sharedPrompt to false."}},
	{ToolCallsUnlimited, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact:   "limits.toolCalls limits nothing where the code of interaction.python calls the tools (%s).",
		Repair: "Remove limits.toolCalls, and limit the calls in the code."}},
	{RewardMissing, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact: "An environment has reward none, and is used where a reward is needed (%s).",
		Repair: "To train, give the entry of environments a teacher. To evaluate, list an environment with a " +
			"reward in evaluation.environments."}},
	{GroupTooSmall, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact: "A group of one episode has no rewards to compare (%s).",
		Repair: "Set groupSize and minMembers to at least 2, or give the RewardEnvironment reward none, so that " +
			"the teacher alone decides."}},
	{TeacherUnusable, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact:   "A teacher with a system prompt needs messages, and an agent may send other prompts (%s).",
		Repair: "Remove teacher.systemPrompt."}},
	{TokenizersDiffer, Row{
		Conditions: "Accepted, Progressing", Reason: specInvalid, NeedsAction: true, Retry: Always, Next: AwaitRepair,
		Fact: "A teacher or a reference does not have the tokenizer of the run's model, as far as is known.",
		Means: "A teacher and the reference of a KL penalty need the tokenizer of the run's model. The operator " +
			"compares them by its table of models.",
		Repair: "Name another model or checkpoint before a first step is committed. If the tokenizers are equal, " +
			"add both models to the chart's table of models."}},
	{PriceUnknown, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true,
		Fact: "budget.usd needs one price for each model of the run (%s).",
		Repair: "Add the price to budget.prices or to the ConfigMap of the chart's prices, or set budget.tokens " +
			"instead."}},
	{SettingsDiffer, Row{
		Conditions: accepted, Reason: specInvalid, NeedsAction: true, Next: AtOnce,
		Fact:   "A step was committed with other settings than the spec has now.",
		Repair: "Restore the fields that the message names. Put the new values into another run."}},
	{UnsupportedByFormat, Row{
		Conditions: "Accepted, Progressing", Reason: specInvalid, NeedsAction: true, Retry: Always,
		Fact:  "The format of the run's model cannot express a prompt (%s).",
		Means: "The format of model.renderer cannot express a prompt, such as tools that it cannot declare.",
		Repair: "Before a first step is committed, change model.renderer or environments[].environmentRef. Before the " +
			"run begins, the RewardEnvironment can also change: set interaction.toolUse.dialect to HermesJSON or " +
			"QwenXML, or give policy.chat no tools."}},
	{TemplateUnusable, Row{
		Conditions: "Accepted, Progressing", Reason: specInvalid, NeedsAction: true, Retry: Always,
		Fact: "The chat template of the run's model cannot be used (%s).",
		Means: "The chat template of model.renderer.template is missing, has another digest, or is not " +
			"supported. The message names the line.",
		Repair: "Correct the template at its source. Before a first step is committed, model.renderer can also " +
			"become {name: ...}, or {template: {inline: ...}} with an edited copy."}},
	{FormatUnknown, Row{
		Conditions: accepted, Reason: string(ModelUnknown), NeedsAction: true,
		Fact:   "The operator does not know the format or the tokenizer of the model (%s).",
		Repair: "Correct model.name, or set model.renderer and model.tokenizer."}},
	{ModelUnknown, Row{
		Conditions: "Progressing, Failed", Endpoint: true, NeedsAction: true, Retry: AWhile, Next: AwaitRepair,
		Fact:  "The endpoint does not offer a model that the run needs.",
		Means: "The endpoint does not offer the model of the run, a judge or the KL penalty's reference.",
		Repair: "Serve the model at the endpoint. Until a first step is committed, model.name, " +
			"algorithm.kl.reference.model and tinker.baseURL can be changed."}},
	{UnsupportedByEndpoint, Row{
		Conditions: "Accepted, Progressing", Endpoint: true, Next: AwaitRepair,
		Fact:  "The endpoint does not support a setting of the spec.",
		Means: "The endpoint ignores or refuses a setting of the spec.",
		Repair: "Repair the endpoint, or change the setting that the message names. If the run has failed, run: " +
			"kubectl tinker retry $(run)"}},
	{OptimizerNotRestored, Row{
		Conditions: "Accepted, Progressing", Reason: string(UnsupportedByEndpoint), Endpoint: true, Next: AwaitRepair,
		Fact: "The endpoint does not restore the optimizer, and failurePolicy.requireOptimizerState requires it.",
		Repair: "Set failurePolicy.requireOptimizerState to false, or repair the endpoint. If the run has " +
			"failed, run: kubectl tinker retry $(run)"}},
}

// probeTable has the problems of a RewardEnvironment, which is probed again after each.
var probeTable = []entry{
	{ProbeNotStarting, Row{
		Conditions: probe,
		Fact:       "The pod of the probe cannot start (%s).",
		Repair:     "Repair the cause that the message names."}},
	{ProbeFailed, Row{
		Conditions: probe,
		Fact:       "The probe ended without a result (%s).",
		Repair:     "Wait for the next probe. If it fails again, read the log of its pod."}},
	{EnvironmentFault, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "The environment failed (%s).",
		Repair: "Repair the server or the program that the message names."}},
	{EnvironmentAuthorityUnknown, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "The environment does not trust the authority of the certificate of a server (%s).",
		Repair: trustAuthority + podsOfEnvironments}},
	{JudgeFault, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "A judge of the environment failed (%s).",
		Repair: "Repair the judge."}},
	{NoTasks, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "No split of the environment has a task.",
		Repair: "Add tasks to the data or the server, or correct the splits."}},
	{CanaryFailed, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "The environment does not reward a right answer (%s).",
		Repair: "Correct the reward of the RewardEnvironment, or the answers of the data."}},
	{DataChanging, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "The ConfigMap of dataset.jsonl.configMapRef changed while the probe read it.",
		Repair: "Wait for the next probe."}},
	{CodeUnavailable, Row{
		Conditions: probe, Reason: unavailable,
		Fact:   "The code of a function cannot be read (%s).",
		Repair: "Create the ConfigMap with the key that the message names, or correct configMapKeyRef."}},
	{Invalid, Row{
		Conditions: probe, Reason: specInvalid,
		Fact:   "The definition of the environment is not valid (%s).",
		Repair: "Correct the field that the message names."}},
	{DataInvalid, Row{
		Conditions: probe,
		Fact:       "The data cannot be read as the spec describes them (%s).",
		Repair:     "Correct the data, or the field that the message names."}},
}
