// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Conditions of a TrainingRun. Every TrainingRun has all of them, except for Recording.
const (
	// ConditionAccepted says that the spec and everything that it refers to can be used: RewardEnvironments exist, are
	// probed and take sessions.
	ConditionAccepted = "Accepted"
	// ConditionPodsReady says that the learner answers and all wanted workers are ready; Unknown while the learner does
	// not answer. The reason is the learner's until it answers, and then the workers'.
	ConditionPodsReady = "PodsReady"
	// ConditionProgressing says that the run makes progress, and from which state a new attempt would continue.
	ConditionProgressing = "Progressing"
	// ConditionSuspended says that the run has been suspended; Unknown while it drains.
	ConditionSuspended = "Suspended"
	// ConditionComplete says that the last step is committed and evaluated. It is final.
	ConditionComplete = "Complete"
	// ConditionFailed says that the run has failed. It makes no further attempts unless spec.retryGeneration is increased.
	ConditionFailed = "Failed"
	// ConditionRecording says that the artifact store and the services of spec.tracking take what the run writes. Only
	// runs with spec.artifacts or spec.tracking have it.
	ConditionRecording = "Recording"
	// ConditionReady sums up for Flux and kstatus: the run does what the spec asks for.
	ConditionReady = "Ready"
	// ConditionStalled says that the run requires intervention: it makes no progress until somebody acts.
	ConditionStalled = "Stalled"
)

// Reasons of several conditions.
const (
	ReasonNotStarted  = "NotStarted"
	ReasonNotFinished = "NotFinished"
	ReasonFinished    = "Finished"
	ReasonSuspended   = "Suspended"
	ReasonDraining    = "Draining"
)

// Reasons of Accepted, besides UnsupportedByEndpoint and OptimizerNotRestored.
const (
	ReasonAccepted         = "Accepted"
	ReasonInitFromNotFound = "InitFromNotFound"
	ReasonInitFromNotReady = "InitFromNotReady"
	ReasonRunFileInvalid   = "RunFileInvalid"
	ReasonRoleNotFound     = "RoleNotFound"
	ReasonPriceUnknown     = "PriceUnknown"
	// ReasonUnsupportedByFormat says that the format of the model has no place for what an environment asks of it.
	// Progressing has it, too.
	ReasonUnsupportedByFormat = "UnsupportedByFormat"
	// ReasonPromptsDiffer says that sampling.sharedPrompt is set for an environment whose episodes may have different
	// prompts.
	ReasonPromptsDiffer = "PromptsDiffer"
	// ReasonPriorityClassNotFound says that the priority class of a run that Kueue admits does not exist.
	ReasonPriorityClassNotFound = "PriorityClassNotFound"
	// ReasonSettingsDiffer says that a step was committed with other settings than the spec has now.
	ReasonSettingsDiffer = "SettingsDiffer"
	// ReasonStatusRestored says that the run was restored from a backup with the status of a former run. The run waits for
	// spec.resumeFrom.
	ReasonStatusRestored = "StatusRestored"
	// ReasonResumeRefused says that the run cannot continue the run that spec.resumeFrom names.
	ReasonResumeRefused = "ResumeRefused"
)

// Reasons of Accepted about environments.
const (
	ReasonEnvironmentNotFound = "EnvironmentNotFound"
	ReasonEnvironmentNotReady = "EnvironmentNotReady"
	ReasonEnvironmentChanged  = "EnvironmentChanged"
	ReasonSplitNotFound       = "SplitNotFound"
	// ReasonSharedServersDisabled says that the manager may not run the server that an environment asks for.
	ReasonSharedServersDisabled = "SharedServersDisabled"
	// ReasonEnvironmentUnavailable says that no worker reaches the server of an environment.
	ReasonEnvironmentUnavailable = "EnvironmentUnavailable"
)

// Reasons of PodsReady.
const (
	ReasonRunning           = "Running"
	ReasonUnreachable       = "Unreachable"
	ReasonStarting          = "Starting"
	ReasonUnschedulable     = "Unschedulable"
	ReasonImagePullFailed   = "ImagePullFailed"
	ReasonSecretNotFound    = "SecretNotFound"
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	ReasonConfigNotFound    = "ConfigNotFound"
	ReasonContainerRefused  = "ContainerRefused"
	// ReasonInitContainerFailed says that a container of initContainers failed, so that the main one was not started.
	ReasonInitContainerFailed = "InitContainerFailed"
	ReasonCreateRefused       = "CreateRefused"
	ReasonSpecRefused         = "SpecRefused"
	ReasonJobSuspended        = "JobSuspended"
	ReasonRestarting          = "Restarting"
)

// Reasons of Progressing.
const (
	ReasonOpening             = "Opening"
	ReasonTraining            = "Training"
	ReasonEvaluating          = "Evaluating"
	ReasonWaitingForLearner   = "WaitingForLearner"
	ReasonWaitingForWorkers   = "WaitingForWorkers"
	ReasonBackingOff          = "BackingOff"
	ReasonEndpointUnreachable = "EndpointUnreachable"
	ReasonEndpointFailing     = "EndpointFailing"
	ReasonEndpointNotTinker   = "EndpointNotTinker"
	ReasonRequestTooLarge     = "RequestTooLarge"
	ReasonThrottled           = "Throttled"
	ReasonArtifactsBlocked    = "ArtifactsBlocked"
	ReasonTokenizerBlocked    = "TokenizerBlocked"
	ReasonDataBlocked         = "DataBlocked"
	ReasonJudgeBlocked        = "JudgeBlocked"
	ReasonPaymentRequired     = "PaymentRequired"
	ReasonPausedCapacity      = "PausedCapacity"
	ReasonPausedRateLimit     = "PausedRateLimit"
	// ReasonUnknownProblem says that the learner reports a problem that this version of the operator does not know.
	ReasonUnknownProblem = "UnknownProblem"
	// ReasonQueued says that the run waits until Kueue admits it.
	ReasonQueued = "Queued"
	// ReasonEvicted says that Kueue has evicted the run: it stops at a saved state and waits in its queue again.
	ReasonEvicted = "Evicted"
	// ReasonNamespaceTerminating says that the run's namespace is being deleted.
	ReasonNamespaceTerminating = "NamespaceTerminating"
)

// Reasons of PodsReady about workers.
const (
	ReasonWorkersMissing  = "WorkersMissing"
	ReasonWorkersCrashed  = "WorkersCrashed"
	ReasonScaledToZero    = "ScaledToZero"
	ReasonWorkersReplaced = "WorkersReplaced"
	ReasonVersionRefused  = "VersionRefused"
)

// Reasons of Suspended and Complete.
const (
	ReasonNotSuspended  = "NotSuspended"
	ReasonBudgetReached = "BudgetReached"
	ReasonCompleted     = "Completed"
)

// Reasons of Failed, besides NotFinished and Finished.
const (
	ReasonConfigRejected        = "ConfigRejected"
	ReasonDataRejected          = "DataRejected"
	ReasonNoProgress            = "NoProgress"
	ReasonRestartsExhausted     = "RestartsExhausted"
	ReasonNoUsableCheckpoint    = "NoUsableCheckpoint"
	ReasonOptimizerNotRestored  = "OptimizerNotRestored"
	ReasonKeyRefused            = "KeyRefused"
	ReasonModelUnknown          = "ModelUnknown"
	ReasonUnsupportedByEndpoint = "UnsupportedByEndpoint"
)

// Reasons of Recording, besides KeyRefused and ArtifactsBlocked.
const (
	ReasonRecording           = "Recording"
	ReasonTrackingConnecting  = "Connecting"
	ReasonTrackingKeyMissing  = "KeyMissing"
	ReasonTrackingDenied      = "PermissionDenied"
	ReasonTrackingNotFound    = "ServiceNotFound"
	ReasonTrackingUnreachable = "ServiceUnreachable"
	ReasonTrackingFailing     = "ServiceFailing"
	ReasonStepsDropped        = "StepsDropped"
	ReasonRolloutsDropped     = "RolloutsDropped"
)

// Reasons of Ready and Stalled, besides those of the condition that decides.
const (
	ReasonNotStalled = "NotStalled"
	ReasonDiverged   = "Diverged"
)

// States of a TrainingRun, for people; values may be added.
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
