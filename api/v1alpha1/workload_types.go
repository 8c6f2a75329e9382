// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// Rollouts has the settings of the worker pods.
// +kubebuilder:validation:XValidation:rule="!has(self.minWorkers) || self.minWorkers <= self.workers",message="minWorkers must not be greater than workers"
type Rollouts struct {
	// workers is the number of worker pods, which kubectl scale and autoscalers also set. With 0 the run waits.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=2
	// +optional
	Workers *int32 `json:"workers,omitempty"`
	// minWorkers is the number of workers with which Kueue may admit the run if its queue lacks quota for all of them. It
	// has no effect on a run that names no queue. Defaults to workers.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinWorkers *int32 `json:"minWorkers,omitempty"`
	// concurrency limits the episodes in progress, over all workers of the run. Fewer are in progress while the endpoint
	// limits the rate of requests. A change takes effect with the learner's next attempt.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:default=256
	// +optional
	Concurrency *int32 `json:"concurrency,omitempty"`
}

// FailurePolicy says when the run is restarted and when it fails permanently.
type FailurePolicy struct {
	// maxRestarts limits the restarts after crashes without a new checkpoint between them. Lost nodes, evictions, refused
	// keys and outages of the service do not count.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=5
	// +optional
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`
	// requireOptimizerState forbids resuming from a checkpoint whose optimizer state is not restored.
	// +kubebuilder:default=true
	// +optional
	RequireOptimizerState *bool `json:"requireOptimizerState,omitempty"`
	// startDeadlineSeconds is the time within which the learner's container must be running. Otherwise the next attempt
	// begins.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=900
	// +optional
	StartDeadlineSeconds *int32 `json:"startDeadlineSeconds,omitempty"`
	// progressDeadlineSeconds is the time without progress after which the learner is restarted. Time does not count if
	// the endpoint causes the delay, if the run waits for a repair, or if the learner does not answer.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=3600
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// Artifacts is the store of a run's files: a folder with the run's uid on a claim or at a URL.
// +kubebuilder:validation:XValidation:rule="has(self.claimName) != has(self.url)",message="give exactly one of claimName and url"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || has(self.url)",message="secretRef has the keys of url's store: remove it, or give url"
type Artifacts struct {
	// claimName is a PersistentVolumeClaim of the run's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// url is the address of a store: s3://BUCKET/PREFIX, azblob://CONTAINER/PREFIX, gs://BUCKET/PREFIX, or file:///FOLDER
	// on a volume of podOverrides. A server that is compatible with S3 needs ?endpoint=https://HOST&region=REGION.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(s3://[a-z0-9][-.a-z0-9]*|azblob://[a-z0-9][-a-z0-9]*)(/[^?#]*)?([?][^#]*)?$') || self.matches('^gs://[a-z0-9][-._a-z0-9]*(/[^?#]*)?$') || self.matches('^file:///[^?#]+$')",message="url must be s3://BUCKET/PREFIX or azblob://CONTAINER/PREFIX, with settings as ?NAME=VALUE, or gs://BUCKET/PREFIX or file:///FOLDER without them"
	// +optional
	URL string `json:"url,omitempty"`
	// secretRef names a Secret whose keys become environment variables of the learner alone: AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or GOOGLE_CREDENTIALS. If it is absent, the
	// service account of podOverrides gives access.
	// +optional
	SecretRef *ref.Secret `json:"secretRef,omitempty"`
	// episodes selects the records of steps and evaluations. All records all episodes with their conversations and tokens.
	// Groups records the first groups in this way, and only the results of other episodes. None records no episodes. A
	// change takes effect with the next attempt.
	// +kubebuilder:default=Groups
	// +optional
	Episodes EpisodeRecords `json:"episodes,omitempty"`
	// groupsPerStep is the number of groups of each step, and of each evaluation, that Groups records with conversations:
	// the first groups in the order of slots.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=4
	// +optional
	GroupsPerStep *int32 `json:"groupsPerStep,omitempty"`
}

// EpisodeRecords selects the episodes that are recorded with their conversations.
// +kubebuilder:validation:Enum=None;Groups;All
type EpisodeRecords string

// The values of EpisodeRecords.
const (
	EpisodesNone   EpisodeRecords = "None"
	EpisodesGroups EpisodeRecords = "Groups"
	EpisodesAll    EpisodeRecords = "All"
)

// DefaultGroupsPerStep is the default of Artifacts.GroupsPerStep.
const DefaultGroupsPerStep = 4
