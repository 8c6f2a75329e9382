// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// The problems at the endpoint, or on the way to it. Learners and workers report them.
const (
	Throttled           Code = "Throttled"
	PausedCapacity      Code = "PausedCapacity"
	PausedRateLimit     Code = "PausedRateLimit"
	PaymentRequired     Code = "PaymentRequired"
	KeyRefused          Code = "KeyRefused"
	EndpointUnreachable Code = "EndpointUnreachable"
	EndpointFailing     Code = "EndpointFailing"
	EndpointNotTinker   Code = "EndpointNotTinker"
	RequestTooLarge     Code = "RequestTooLarge"
	SamplingRefused     Code = "SamplingRefused"
	SettingsRefused     Code = "SettingsRefused"
	DataRefused         Code = "DataRefused"
	ContextTooShort     Code = "ContextTooShort"
	ModelUnknown        Code = "ModelUnknown"
	CheckpointMissing   Code = "CheckpointMissing"
)

// The problems of what a run reads and writes besides the endpoint. Learners and workers report them.
const (
	ArtifactsBlocked       Code = "ArtifactsBlocked"
	TokenizerBlocked       Code = "TokenizerBlocked"
	DataBlocked            Code = "DataBlocked"
	JudgeBlocked           Code = "JudgeBlocked"
	UnsupportedByFormat    Code = "UnsupportedByFormat"
	EnvironmentUnavailable Code = "EnvironmentUnavailable"
)

// The problems of a RewardEnvironment, which its probe finds.
const (
	Invalid          Code = "Invalid"
	DataInvalid      Code = "DataInvalid"
	EnvironmentFault Code = "EnvironmentFault"
	JudgeFault       Code = "JudgeFault"
	NoTasks          Code = "NoTasks"
	CanaryFailed     Code = "CanaryFailed"
)

// The problems of the services that show a run's curves. Learners report them.
const (
	Connecting         Code = "Connecting"
	KeyMissing         Code = "KeyMissing"
	TrackerKeyRefused  Code = "TrackerKeyRefused"
	PermissionDenied   Code = "PermissionDenied"
	ServiceNotFound    Code = "ServiceNotFound"
	ServiceUnreachable Code = "ServiceUnreachable"
	ServiceFailing     Code = "ServiceFailing"
	StepsDropped       Code = "StepsDropped"
	RolloutsDropped    Code = "RolloutsDropped"
)

// The problems for which attempts end.
const (
	UnsupportedByEndpoint Code = "UnsupportedByEndpoint"
	OptimizerNotRestored  Code = "OptimizerNotRestored"
	NoUsableCheckpoint    Code = "NoUsableCheckpoint"
	StartRejected         Code = "StartRejected"
	EnvironmentsRejected  Code = "EnvironmentsRejected"
	Untrainable           Code = "Untrainable"
	Diverged              Code = "Diverged"
	ConfigRejected        Code = "ConfigRejected"
	DataRejected          Code = "DataRejected"
	SettingsDiffer        Code = "SettingsDiffer"
	ResumeRefused         Code = "ResumeRefused"
	SpecRefused           Code = "SpecRefused"
)

// The endings of attempts that are no problems: somebody asked for them.
const (
	SettingsChanged Code = "SettingsChanged"
	JobSuspended    Code = "JobSuspended"
	StopRequested   Code = "StopRequested"
	BudgetReached   Code = "BudgetReached"
	Superseded      Code = "Superseded"
)
