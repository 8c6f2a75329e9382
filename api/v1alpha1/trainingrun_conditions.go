// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Conditions of a TrainingRun. Every TrainingRun has all of them, except for Recording.
const (
	// ConditionAccepted says that the spec and everything that it refers to can be used: RewardEnvironments exist, are
	// probed and take sessions.
	ConditionAccepted = "Accepted"
	// ConditionPodsReady says that the learner answers and all wanted workers are ready; Unknown while the learner does
	// not answer. The reason describes the learner until it answers, and then the workers.
	ConditionPodsReady = "PodsReady"
	// ConditionProgressing says that the run makes progress, and from which state a new attempt would continue.
	ConditionProgressing = "Progressing"
	// ConditionSuspended says that the run has been suspended; Unknown while it drains.
	ConditionSuspended = "Suspended"
	// ConditionComplete says that the last step is committed and evaluated. It is final.
	ConditionComplete = "Complete"
	// ConditionFailed says that the run has failed. It makes no further attempts unless spec.retryGeneration is increased.
	ConditionFailed = "Failed"
	// ConditionRecording says that the artifact store and the services of spec.tracking accept the run's records. Only
	// runs with spec.artifacts or spec.tracking have it.
	ConditionRecording = "Recording"
	// ConditionReady is the summary for Flux and kstatus: the run follows its spec.
	ConditionReady = "Ready"
	// ConditionStalled says that the run requires intervention: it makes no progress until a person acts.
	ConditionStalled = "Stalled"
)

// Reasons of several conditions.
const (
	// ReasonAsExpected says that a condition which reports something unusual, such as Stalled, does not hold.
	ReasonAsExpected = "AsExpected"
	// ReasonNotStarted says that no attempt has been made, or that no learner has written anything yet.
	ReasonNotStarted = "NotStarted"
	// ReasonFinished says that the run is complete or has failed.
	ReasonFinished = "Finished"
	// ReasonSuspended says that the run is suspended.
	ReasonSuspended = "Suspended"
	// ReasonDraining says that the learner stops at a saved state, because the run is suspended.
	ReasonDraining = "Draining"
	// ReasonNamespaceTerminating says that the run's namespace is being deleted.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonUnknownProblem says that a program reports a problem that this version of the operator does not know.
	ReasonUnknownProblem = "UnknownProblem"
)

// Reasons of Accepted, besides ModelUnknown, PodInvalid and UnsupportedByEndpoint.
const (
	// ReasonAccepted says that the spec and everything that it refers to can be used.
	ReasonAccepted = "Accepted"
	// ReasonSpecInvalid says that a field of the spec has to be corrected. A RewardEnvironment also has the reason.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonEnvironmentNotUsable says that a RewardEnvironment of the run is missing, is not ready, has changed, or takes
	// no sessions. Progressing has the reason while the run waits for it.
	ReasonEnvironmentNotUsable = "EnvironmentNotUsable"
	// ReasonSourceNotUsable says that the state from which the run begins or continues cannot be used: the checkpoint of
	// initFrom, the run of resumeFrom, the run file of an earlier attempt, or a status from a backup.
	ReasonSourceNotUsable = "SourceNotUsable"
	// ReasonEndpointNotUsable says that the TinkerEndpoint of the run is missing, or does not allow the run.
	ReasonEndpointNotUsable = "EndpointNotUsable"
)

// Reasons of PodsReady, besides KeyRefused. Progressing and Stalled have them while the run waits for its pods.
const (
	// ReasonRunning says that the learner answers and all workers are ready.
	ReasonRunning = "Running"
	// ReasonStarting says that pods start, or are replaced.
	ReasonStarting = "Starting"
	// ReasonObjectNotFound says that a Secret, a ConfigMap, a key or a claim that a pod needs does not exist.
	ReasonObjectNotFound = "ObjectNotFound"
	// ReasonPodInvalid says that a pod cannot start as the spec describes it: the API server or the kubelet refuses it, or
	// an init container fails.
	ReasonPodInvalid = "PodInvalid"
	// ReasonUnschedulable says that no node fits a pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePullFailed says that an image cannot be pulled.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonCreateRefused says that a quota or a policy of the cluster refuses a Job or its pods.
	ReasonCreateRefused = "CreateRefused"
	// ReasonJobSuspended says that another controller, such as a queue, has suspended a Job of the run.
	ReasonJobSuspended = "JobSuspended"
	// ReasonUnreachable says that the learner runs, but does not give the operator a usable answer.
	ReasonUnreachable = "Unreachable"
	// ReasonWorkersMissing says that workers are missing, crash, or are not ready.
	ReasonWorkersMissing = "WorkersMissing"
)

// Reasons of Progressing. Stalled and Ready also have these reasons.
const (
	// ReasonProgressing says that the run makes progress. status.state says whether it trains or evaluates.
	ReasonProgressing = "Progressing"
	// ReasonWaitingForLearner says that the learner has not answered yet.
	ReasonWaitingForLearner = "WaitingForLearner"
	// ReasonQueued says that the run waits until Kueue admits it. PodsReady also has the reason.
	ReasonQueued = "Queued"
	// ReasonEvicted says that Kueue has evicted the run: it stops at a saved state and waits in its queue again.
	ReasonEvicted = "Evicted"
	// ReasonBackingOff says that the next attempt waits for a while, because the previous attempt failed.
	ReasonBackingOff = "BackingOff"
	// ReasonKeyRefused says that the endpoint refuses the API key.
	ReasonKeyRefused = "KeyRefused"
	// ReasonPaymentRequired says that the endpoint answers 402.
	ReasonPaymentRequired = "PaymentRequired"
	// ReasonEndpointUnreachable says that the endpoint does not answer.
	ReasonEndpointUnreachable = "EndpointUnreachable"
	// ReasonEndpointNotTinker says that the endpoint's server is not the Tinker API, or that client and server do not
	// agree on TLS. A TinkerEndpoint also has the reason.
	ReasonEndpointNotTinker = "EndpointNotTinker"
	// ReasonEndpointFailing says that the endpoint answers with errors of its own.
	ReasonEndpointFailing = "EndpointFailing"
	// ReasonEndpointBusy says that the endpoint limits the rate of requests, or has paused the model. The problem passes
	// by itself.
	ReasonEndpointBusy = "EndpointBusy"
	// ReasonModelUnknown says that the endpoint does not offer a model of the run, or that the operator does not know the
	// format or the tokenizer of model.name.
	ReasonModelUnknown = "ModelUnknown"
	// ReasonUnsupportedByEndpoint says that the endpoint does not support, or refuses, a setting or the data of the run.
	ReasonUnsupportedByEndpoint = "UnsupportedByEndpoint"
	// ReasonArtifactsBlocked says that the learner cannot write its files. Recording also has the reason.
	ReasonArtifactsBlocked = "ArtifactsBlocked"
	// ReasonInputBlocked says that the tokenizer or the data cannot be read, or that a judge cannot be asked.
	ReasonInputBlocked = "InputBlocked"
)

// Reasons of Suspended, Complete and Failed.
const (
	// ReasonBudgetReached says that a limit of spec.budget has suspended the run.
	ReasonBudgetReached = "BudgetReached"
	// ReasonCompleted says that every step is committed and every evaluation has its result.
	ReasonCompleted = "Completed"
	// ReasonRejected says that the learner refused its configuration or its data.
	ReasonRejected = "Rejected"
	// ReasonRestartsExhausted says that failurePolicy.maxRestarts is used up.
	ReasonRestartsExhausted = "RestartsExhausted"
	// ReasonNoUsableCheckpoint says that the endpoint cannot read the checkpoints that the run needs.
	ReasonNoUsableCheckpoint = "NoUsableCheckpoint"
	// ReasonDiverged says that the training has diverged. Stalled has the reason while the run continues.
	ReasonDiverged = "Diverged"
)

// Reasons of Recording, besides ArtifactsBlocked.
const (
	// ReasonRecording says that the stores of the run take its records.
	ReasonRecording = "Recording"
	// ReasonTrackerRefused says that a service of spec.tracking refuses the run, or is given no key.
	ReasonTrackerRefused = "TrackerRefused"
	// ReasonTrackerUnreachable says that a service of spec.tracking does not answer, or fails.
	ReasonTrackerUnreachable = "TrackerUnreachable"
	// ReasonRecordsDropped says that the learner dropped records for a service, because it had no room for them or the
	// service refused them.
	ReasonRecordsDropped = "RecordsDropped"
)

// States of a TrainingRun, for people. Later versions may add values.
const (
	StatePending    = "Pending"
	StateQueued     = "Queued"
	StatePreparing  = "Preparing"
	StateTraining   = "Training"
	StateEvaluating = "Evaluating"
	StateRecovering = "Recovering"
	StateDraining   = "Draining"
	StateSuspended  = "Suspended"
	StateSucceeded  = "Succeeded"
	StateFailed     = "Failed"
)
