// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// podTable has the problems of pods, and of Jobs that Kubernetes refuses.
var podTable = []entry{
	{SecretNotFound, Row{
		Conditions: pods, Reason: objectNotFound, NeedsAction: true,
		Fact:   "A Secret that the pod needs does not exist (%s).",
		Field:  "the field of the spec that names it",
		Repair: "Create the Secret, or correct $(field)."}},
	{SecretKeyNotFound, Row{
		Conditions: pods, Reason: objectNotFound, NeedsAction: true,
		Fact:   "A Secret lacks a key that the pod needs (%s).",
		Field:  "the field of the spec that names it",
		Repair: "Add the key to the Secret, or correct $(field)."}},
	{ConfigNotFound, Row{
		Conditions: pods, Reason: objectNotFound, NeedsAction: true,
		Fact:   "The kubelet cannot set the variables of the container (%s).",
		Means:  "The kubelet cannot set a container's variables: a ConfigMap, a Secret or a key does not exist.",
		Field:  "the field of the spec that names it",
		Repair: "Create the object that the message names, or correct $(field)."}},
	{VolumeNotMounted, Row{
		Conditions: pods, Reason: objectNotFound, NeedsAction: true,
		Fact:   "A volume of the pod cannot be mounted (%s).",
		Field:  "the field of the spec that names it",
		Repair: "Create the object that the message names, or correct $(field)."}},
	{ClaimNotFound, Row{
		Conditions: pods, Reason: objectNotFound, NeedsAction: true,
		Fact:   "A PersistentVolumeClaim that the pod needs does not exist (%s).",
		Field:  "the field of the spec that names it",
		Repair: "Create the claim, or correct $(field)."}},
	{Unschedulable, Row{
		Conditions: pods, NeedsAction: true,
		Fact:   "The pod fits on no node (%s).",
		Repair: "Add a node that fits, or correct $(field)."}},
	{ImagePullFailed, Row{
		Conditions: pods, NeedsAction: true,
		Fact:   "An image cannot be pulled (%s).",
		Means:  "An image cannot be pulled. The pod is replaced every 45 seconds.",
		Repair: "Repair the registry, or correct $(field)."}},
	{ContainerRefused, Row{
		Conditions: pods, Reason: podInvalid, NeedsAction: true,
		Fact:   "The kubelet cannot start the container (%s).",
		Repair: "Correct $(field)."}},
	{InitContainerFailed, Row{
		Conditions: pods, Reason: podInvalid, NeedsAction: true,
		Fact: "An init container failed (%s).",
		Means: "A container of initContainers failed, or a sidecar among them fails repeatedly. A learner is " +
			"tried again every 45 seconds.",
		Repair: "Correct $(field), or repair the service that the container needs."}},
	{ServerCrashed, Row{
		Conditions: pods + ", " + probe, Reason: podInvalid, NeedsAction: true,
		Fact: "The server of an environment ends instead of running (%s).",
		Means: "The container of an environment's server or functions ends before the pod's main container " +
			"begins. The kubelet starts the container again, with longer pauses.",
		Repair: "Correct the program in the image of ors.server or execution. Its log: kubectl logs POD -c " +
			"CONTAINER --previous"}},
	{PackagesUnavailable, Row{
		Conditions: pods + ", " + probe, Reason: podInvalid, NeedsAction: true,
		Fact: "The packages of execution.requirements cannot be installed (%s).",
		Means: "The container that installs execution.requirements failed. The pod is tried again every 45 " +
			"seconds.",
		Repair: "Correct execution.requirements or execution.index, or repair the index. An image with the " +
			"packages needs no index."}},
	{SpecRefused, Row{
		Conditions: "Accepted, PodsReady", Reason: podInvalid, NeedsAction: true, Next: AtOnce,
		Fact:   "The API server refuses an object as not valid (%s).",
		Means:  "The API server refuses the Job as not valid. The Job is tried again when the spec changes.",
		Repair: "Correct $(field)."}},
	{LearnerNotStarting, Row{
		Conditions: "Stalled", Reason: podInvalid, NeedsAction: true,
		Fact:   "The learner did not start in time twice in a row (%s).",
		Repair: "Look at the events of the learner's pod. Correct podOverrides[target=Learner], or repair the cluster."}},
	{CreateRefused, Row{
		Conditions: pods, NeedsAction: true,
		Fact: "The API server refuses to create an object (%s).",
		Means: "The API server refuses the Job or its pods, because of a quota, a policy, a silent webhook, or a " +
			"missing service account or priority class.",
		Repair: "Change the quota or the policy, or correct $(field)."}},
	{NamespaceTerminating, Row{
		Conditions: "PodsReady, Progressing",
		Fact:       "The namespace is being deleted. The run makes no further attempt, and its Jobs are deleted."}},
	{JobSuspended, Row{
		Conditions: pods, Next: AtOnce,
		Fact:   "Another controller, such as a queue, has suspended %s.",
		Means:  "Another controller, such as a queue, has suspended the Job. No deadline counts the wait.",
		Repair: "Wait until that controller resumes the Job."}},
	{WorkersMissing, Row{
		Conditions: pods,
		Fact:       "Some workers are missing or not ready.",
		Repair:     "Look at the pods of status.workerSelector and their events."}},
	{ProgramsNotReady, Row{
		Conditions: pods, Reason: string(WorkersMissing),
		Fact: "No pod of a program with placement Pods is ready (%s).",
		Repair: "If this lasts, read the log and events of its pods: kubectl describe pods -l " +
			"rl.tinker-operator.dev/role=program"}},
	{ClaimsNotReady, Row{
		Conditions: pods, Reason: string(WorkersMissing),
		Fact: "No sandbox of execution.pods.warmPoolRef is ready (%s).",
		Repair: "If this lasts, read the conditions: kubectl describe sandboxclaims,sandboxwarmpools. Check that " +
			"the pool has room for the replicas of all runs."}},
	{WorkersAwaited, Row{
		Conditions: progressing, Reason: string(WorkersMissing),
		Fact:   "The learner waits for workers, and no worker is ready.",
		Repair: "If this lasts, look at the pods of status.workerSelector and their events."}},
	{WorkersUnanswered, Row{
		Conditions: pods, Reason: string(WorkersMissing), NeedsAction: true,
		Fact:   "A worker runs, and the learner has never answered the worker (%s).",
		Repair: "Let NetworkPolicies admit the workers to the learner. Read the log of the pod."}},
	{WorkersCrashed, Row{
		Conditions: pods, Reason: string(WorkersMissing), NeedsAction: true,
		Fact:    "A worker has crashed (%s).",
		Repair:  "Read the log of the workers.",
		Command: "kubectl tinker logs $(run) --role rollout"}},
	{WorkersOutOfMemory, Row{
		Conditions: pods, Reason: string(WorkersMissing), NeedsAction: true,
		Fact:   "A worker used more memory than its limit (%s).",
		Repair: "Raise podOverrides[target=Workers].resources.limits.memory."}},
	{ScaledToZero, Row{
		Conditions: "PodsReady, Progressing", Reason: string(WorkersMissing), NeedsAction: true,
		Fact:   "The spec asks for no workers.",
		Repair: "Raise rollouts.workers."}},
	{VersionRefused, Row{
		Conditions: pods, Reason: string(WorkersMissing), NeedsAction: true,
		Fact:   "The workers are of another version than the learner, and are replaced (%s).",
		Repair: "Wait."}},
	{ImageOfOtherVersion, Row{
		Conditions: pods, Reason: string(WorkersMissing), NeedsAction: true,
		Fact:   "The image of the workers is of another version than the learner (%s).",
		Repair: "Remove podOverrides[target=Workers].image, or name an image of the operator's version."}},
	{WorkersKeyRefused, Row{
		Conditions: "PodsReady, Progressing", Reason: string(KeyRefused), NeedsAction: true,
		Fact:   "The API key of the workers is empty, or the endpoint refuses it (%s).",
		Repair: "Put a valid key into the Secret, or correct tinker.apiKeySecretKeyRef."}},
	{Unreachable, Row{
		Conditions: pods,
		Fact:       "The learner runs and does not answer the operator.",
		Means:      "The learner runs and does not answer the operator. It may be training.",
		Repair: "If this lasts, let NetworkPolicies admit the operator to the run's pods. Look at the learner's " +
			"node and log."}},
	{ReplyUnusable, Row{
		Conditions: pods, Reason: string(Unreachable),
		Fact:   "The operator cannot use the answer of the learner (%s).",
		Means:  "The operator cannot use the answer of the learner, which may be training.",
		Repair: "If this lasts, read the log of the learner's pod."}},
	{Draining, Row{
		Conditions: "Suspended",
		Means:      "The learner stops at a saved state. If a node does not answer, the message names the node.",
		Repair:     "Wait. Repair the node, or delete its Node object."}},
	{Suspended, Row{
		Conditions: "Suspended",
		Means:      "The run is suspended at its newest checkpoint.",
		Repair:     "Continue the run: kubectl tinker resume $(run)"}},
}
