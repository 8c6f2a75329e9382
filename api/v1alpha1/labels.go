// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ManagedBy is spec.managedBy of a run that this operator reconciles.
const ManagedBy = "rl.tinker-operator.dev/trainingrun-controller"

// Labels of the objects that the operator makes.
const (
	// LabelManagedBy is on every object, with the value ManagedByValue: the manager caches no objects without it.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelRun is the TrainingRun's name.
	LabelRun = "rl.tinker-operator.dev/run"
	// LabelRunUID is the TrainingRun's uid, which distinguishes the run from an earlier run of the same name.
	LabelRunUID = "rl.tinker-operator.dev/run-uid"
	// LabelEnvironment is the RewardEnvironment's name.
	LabelEnvironment = "rl.tinker-operator.dev/environment"
	// LabelEnvironmentUID is the RewardEnvironment's uid.
	LabelEnvironmentUID = "rl.tinker-operator.dev/environment-uid"
	// LabelRole is the role of a Job and its pods.
	LabelRole = "rl.tinker-operator.dev/role"
	// LabelAttempt is the number of a learner's attempt, or of a probe's try.
	LabelAttempt = "rl.tinker-operator.dev/attempt"
	// LabelDefinition is the beginning of the digest of the definition that a probe checks.
	LabelDefinition = "rl.tinker-operator.dev/definition"
	// AnnotationTemplate is the digest of the settings from which an object, such as a workers' Job, was made. If the
	// digest differs, the object is made again or updated.
	AnnotationTemplate = "rl.tinker-operator.dev/template"
	// AnnotationSettings has, as JSON, the digest of each field of the spec from which a learner's Job and its run file
	// were made.
	AnnotationSettings = "rl.tinker-operator.dev/settings"
	// AnnotationSpecDigest is the digest of the settings that decide the weights, as the run file has them.
	AnnotationSpecDigest = "rl.tinker-operator.dev/spec-digest"
	// AnnotationSuspended marks a workers' Job that the operator itself suspends, since the run wants no workers. The
	// operator does not resume a Job that another controller suspended.
	AnnotationSuspended = "rl.tinker-operator.dev/suspended"
	// AnnotationImage is the image of the manager's settings when it made a Job. Pods with overrides may run another
	// image.
	AnnotationImage = "rl.tinker-operator.dev/image"
	// AnnotationPods has, as JSON, the manager's settings for the pods of an attempt: image and defaults of pods. It
	// is on the run file, which outlives Jobs.
	AnnotationPods = "rl.tinker-operator.dev/pods"
	// AnnotationEndpointSecret names, on the run file, the Secret with the run's token at its TinkerEndpoint.
	AnnotationEndpointSecret = "rl.tinker-operator.dev/endpoint-secret"
	// AnnotationCheckAgain is any text on a TinkerEndpoint. When the text changes, the broker checks the server again.
	AnnotationCheckAgain = "rl.tinker-operator.dev/check-again"
	// AnnotationCreator is the user who created a run, if an admission policy guarantees it.
	AnnotationCreator = "rl.tinker-operator.dev/creator"
	// AnnotationData lists the volumes of data sets that a Job's pods mount.
	AnnotationData = "rl.tinker-operator.dev/data"
	// AnnotationServers lists, as JSON, the environment servers that run beside the workers.
	AnnotationServers = "rl.tinker-operator.dev/servers"
	// AnnotationRunFile names the ConfigMap that a Job's pods mount.
	AnnotationRunFile = "rl.tinker-operator.dev/run-file"
)

// LabelServerPort distinguishes the shared environment servers of a run.
const LabelServerPort = "rl.tinker-operator.dev/server-port"

// LabelProgram distinguishes the programs of a run that have pods of their own. LabelNetwork is the network of these
// pods, in lower case.
const (
	LabelProgram = "rl.tinker-operator.dev/program"
	LabelNetwork = "rl.tinker-operator.dev/network"
)

// LabelPoolProgram is the name of the Service that selects the pods that a run has claimed from a warm pool. The
// controller of agent-sandbox admits only labels of this domain on claimed pods.
const LabelPoolProgram = "tinker-operator.sandbox.users.io/program"

// AnnotationProgramToken is the SHA-256 digest of the token that the runner of a pod from a warm pool requires of
// workers. The pod reads the annotation through a volume of the downward API.
const AnnotationProgramToken = "rl.tinker-operator.dev/program-token"

// LabelEndpoint is the TinkerEndpoint's name, on the objects of its broker.
const LabelEndpoint = "rl.tinker-operator.dev/endpoint"

// ManagedByValue is the value of LabelManagedBy.
const ManagedByValue = "tinker-operator"

// PackagesContainerPrefix is the prefix of the names of containers that install packages for functions.
const PackagesContainerPrefix = "install-packages-"

// ServerContainerPrefix is the prefix of the names of containers that run servers of environments.
const ServerContainerPrefix = "environment-"

// Values of LabelRole.
const (
	RoleLearner = "learner"
	RoleRollout = "rollout"
	RoleProbe   = "probe"
	RoleServer  = "server"
	// RoleProgram is the role of pods that run functions of users for the workers of a run.
	RoleProgram = "program"
	// RoleBroker is the role of the pods of a TinkerEndpoint's broker.
	RoleBroker = "broker"
	// RoleReader is the role of a pod in which kubectl tinker reads artifacts, or asks the endpoint.
	RoleReader = "reader"
)
