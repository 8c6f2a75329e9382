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

// The reasons for which attempts end.
const (
	UnsupportedByEndpoint Code = "UnsupportedByEndpoint"
	OptimizerNotRestored  Code = "OptimizerNotRestored"
	NoUsableCheckpoint    Code = "NoUsableCheckpoint"
	TokenizerRejected     Code = "TokenizerRejected"
	SettingsDiffer        Code = "SettingsDiffer"
	ResumeRefused         Code = "ResumeRefused"
	SpecRefused           Code = "SpecRefused"
	SettingsChanged       Code = "SettingsChanged"
	JobSuspended          Code = "JobSuspended"
	Diverged              Code = "Diverged"
)
