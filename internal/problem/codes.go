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

// The problems of TLS with the endpoint's server. The clients of learners, workers and brokers find them.
const (
	EndpointAuthorityUnknown   Code = "EndpointAuthorityUnknown"
	EndpointCertificateExpired Code = "EndpointCertificateExpired"
	EndpointHostMismatch       Code = "EndpointHostMismatch"
	EndpointCertificateInvalid Code = "EndpointCertificateInvalid"
	EndpointWithoutTLS         Code = "EndpointWithoutTLS"
	EndpointRefusesTLS         Code = "EndpointRefusesTLS"
)

// The problems at the broker of a TinkerEndpoint. The answers that the broker makes itself contain them.
const (
	EndpointKeyRefused    Code = "EndpointKeyRefused"
	EndpointBudgetReached Code = "EndpointBudgetReached"
	TokenRefused          Code = "TokenRefused"
	ObjectNotOwned        Code = "ObjectNotOwned"
	RouteRefused          Code = "RouteRefused"
	RequestInvalid        Code = "RequestInvalid"
	ModelRefused          Code = "ModelRefused"
	CheckRefused          Code = "CheckRefused"
	BrokerDraining        Code = "BrokerDraining"
	RecordsBlocked        Code = "RecordsBlocked"
)

// The problems of data, stores and services that a run reads and writes besides the endpoint. Learners and workers
// report them.
const (
	ArtifactsBlocked       Code = "ArtifactsBlocked"
	TokenizerBlocked       Code = "TokenizerBlocked"
	DataBlocked            Code = "DataBlocked"
	RowsBlocked            Code = "RowsBlocked"
	JudgeBlocked           Code = "JudgeBlocked"
	UnsupportedByFormat    Code = "UnsupportedByFormat"
	TemplateUnusable       Code = "TemplateUnusable"
	EnvironmentUnavailable Code = "EnvironmentUnavailable"
)

// The problems of servers other than the endpoint, whose certificate is signed by an authority that the pods do not
// trust. Learners, workers and probes report them.
const (
	DataAuthorityUnknown        Code = "DataAuthorityUnknown"
	JudgeAuthorityUnknown       Code = "JudgeAuthorityUnknown"
	ArtifactsAuthorityUnknown   Code = "ArtifactsAuthorityUnknown"
	EnvironmentAuthorityUnknown Code = "EnvironmentAuthorityUnknown"
	ServersAuthorityUnknown     Code = "ServersAuthorityUnknown"
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

// The problems because of which attempts end.
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

// The endings of attempts that are not problems: they follow from a request, a limit or a later attempt.
const (
	SettingsChanged Code = "SettingsChanged"
	JobSuspended    Code = "JobSuspended"
	StopRequested   Code = "StopRequested"
	BudgetReached   Code = "BudgetReached"
	Superseded      Code = "Superseded"
)

// The problems of a spec and of the objects that it refers to. The operator finds them.
const (
	EnvironmentNotFound    Code = "EnvironmentNotFound"
	EnvironmentProbing     Code = "EnvironmentProbing"
	EnvironmentNotReady    Code = "EnvironmentNotReady"
	EnvironmentInvalid     Code = "EnvironmentInvalid"
	EnvironmentNotStarting Code = "EnvironmentNotStarting"
	EnvironmentChanged     Code = "EnvironmentChanged"
	SplitNotFound          Code = "SplitNotFound"
	PortsCollide           Code = "PortsCollide"
	SharedServersDisabled  Code = "SharedServersDisabled"
	ProgramPodsDisabled    Code = "ProgramPodsDisabled"
	WarmPoolsDisabled      Code = "WarmPoolsDisabled"
	WarmPoolsMissing       Code = "WarmPoolsMissing"
	WarmPoolNotFound       Code = "WarmPoolNotFound"
	WarmPoolUnfit          Code = "WarmPoolUnfit"
	ServersUnavailable     Code = "ServersUnavailable"
	InitFromNotFound       Code = "InitFromNotFound"
	InitFromNotReady       Code = "InitFromNotReady"
	InitFromNotComplete    Code = "InitFromNotComplete"
	InitFromFailed         Code = "InitFromFailed"
	InitFromCycle          Code = "InitFromCycle"
	CursorUnknown          Code = "CursorUnknown"
	PriorityClassNotFound  Code = "PriorityClassNotFound"
	NotPlaced              Code = "NotPlaced"
	WorkloadRefused        Code = "WorkloadRefused"
	Queued                 Code = "Queued"
	Evicted                Code = "Evicted"
	StatusRestored         Code = "StatusRestored"
	RunFileUnreadable      Code = "RunFileUnreadable"
	RunFileInvalid         Code = "RunFileInvalid"
	RoleNotFound           Code = "RoleNotFound"
	GroupingUnusable       Code = "GroupingUnusable"
	PromptsDiffer          Code = "PromptsDiffer"
	ToolCallsUnlimited     Code = "ToolCallsUnlimited"
	PriceUnknown           Code = "PriceUnknown"
	FormatUnknown          Code = "FormatUnknown"
	RewardMissing          Code = "RewardMissing"
	GroupTooSmall          Code = "GroupTooSmall"
	TeacherUnusable        Code = "TeacherUnusable"
	TokenizersDiffer       Code = "TokenizersDiffer"
)

// The problems of a probe that the operator finds.
const (
	ProbeNotStarting Code = "ProbeNotStarting"
	ProbeFailed      Code = "ProbeFailed"
	DataChanging     Code = "DataChanging"
	CodeUnavailable  Code = "CodeUnavailable"
)

// The problems of pods, and of Jobs that Kubernetes refuses. The operator finds them.
const (
	SecretNotFound       Code = "SecretNotFound"
	SecretKeyNotFound    Code = "SecretKeyNotFound"
	ConfigNotFound       Code = "ConfigNotFound"
	VolumeNotMounted     Code = "VolumeNotMounted"
	ClaimNotFound        Code = "ClaimNotFound"
	Unschedulable        Code = "Unschedulable"
	ImagePullFailed      Code = "ImagePullFailed"
	ContainerRefused     Code = "ContainerRefused"
	InitContainerFailed  Code = "InitContainerFailed"
	ServerCrashed        Code = "ServerCrashed"
	PackagesUnavailable  Code = "PackagesUnavailable"
	LearnerNotStarting   Code = "LearnerNotStarting"
	CreateRefused        Code = "CreateRefused"
	NamespaceTerminating Code = "NamespaceTerminating"
	WorkersMissing       Code = "WorkersMissing"
	ProgramsNotReady     Code = "ProgramsNotReady"
	ClaimsNotReady       Code = "ClaimsNotReady"
	WorkersAwaited       Code = "WorkersAwaited"
	WorkersUnanswered    Code = "WorkersUnanswered"
	WorkersCrashed       Code = "WorkersCrashed"
	WorkersOutOfMemory   Code = "WorkersOutOfMemory"
	ScaledToZero         Code = "ScaledToZero"
	VersionRefused       Code = "VersionRefused"
	ImageOfOtherVersion  Code = "ImageOfOtherVersion"
	WorkersKeyRefused    Code = "WorkersKeyRefused"
	Unreachable          Code = "Unreachable"
	ReplyUnusable        Code = "ReplyUnusable"
	Draining             Code = "Draining"
	Suspended            Code = "Suspended"
)

// The ends of runs that the operator decides.
const (
	MetricNotFinite   Code = "MetricNotFinite"
	NoProgress        Code = "NoProgress"
	RestartsExhausted Code = "RestartsExhausted"
)

// The problems of a run at a TinkerEndpoint. The operator finds them.
const (
	EndpointNotFound  Code = "EndpointNotFound"
	EndpointForbidden Code = "EndpointForbidden"
	EndpointsDisabled Code = "EndpointsDisabled"
)

// The problems of a TinkerEndpoint. Its broker reports them, or the operator finds them.
const (
	ServerKeyRefused       Code = "ServerKeyRefused"
	EndpointObjectNotFound Code = "EndpointObjectNotFound"
	EndpointPricesInvalid  Code = "EndpointPricesInvalid"
	EndpointInvalid        Code = "EndpointInvalid"
	BrokerUnavailable      Code = "BrokerUnavailable"
	RecordsFailed          Code = "RecordsFailed"
	ServerUnreachable      Code = "ServerUnreachable"
	ServerCheckRefused     Code = "ServerCheckRefused"
)
