// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=rl.tinker-operator.dev
// +versionName=v1alpha1

// Package tracking has the services that show the curves of a TrainingRun.
package tracking

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// Tracking names services that show the run's curves or rollouts. They receive each committed step once, whatever the
// number of attempts. A service that does not answer or refuses a key never stops the run: the condition Recording says
// what to repair, and missed steps are sent once the service works again.
// +kubebuilder:validation:XValidation:rule="has(self.wandb) || has(self.mlflow) || has(self.tensorboard) || has(self.openreward)",message="tracking names no service: give wandb, mlflow, tensorboard or openreward, or remove tracking"
type Tracking struct {
	// wandb is Weights & Biases.
	// +optional
	WandB *WandB `json:"wandb,omitempty"`
	// mlflow is a tracking server of MLflow.
	// +optional
	MLflow *MLflow `json:"mlflow,omitempty"`
	// tensorboard writes event files for TensorBoard to the run's artifacts.
	// +optional
	TensorBoard *TensorBoard `json:"tensorboard,omitempty"`
	// openreward receives the rollouts of committed steps: messages, calls of tools and rewards.
	// +optional
	OpenReward *OpenReward `json:"openreward,omitempty"`
}

// OpenReward is the service that shows rollouts. Rollouts that the service has not received when a learner ends stay in
// the run's artifacts.
type OpenReward struct {
	// runName is the name of the run there. Defaults to metadata.name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	RunName string `json:"runName,omitempty"`
	// baseURL is the address of a service other than OpenReward's. The host of its REST interface is the host of baseURL
	// with the prefix "api.".
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/@?#]+(/[^?#]*)?$')",message="baseURL must be http:// or https:// with a host, without a user, ? or #: the key belongs into apiKeySecretKeyRef's Secret"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// apiKeySecretKeyRef names the API key, which only the learner receives. A key that is added or replaced later takes
	// effect without a restart.
	// +required
	APIKeySecretKeyRef ref.SecretKey `json:"apiKeySecretKeyRef"`
}

// MLflow is a tracking server of MLflow. The run there has the uid of the TrainingRun in its tag tinker-operator.uid.
// +kubebuilder:validation:XValidation:rule="has(self.username) == has(self.passwordSecretKeyRef)",message="basic authentication needs username and passwordSecretKeyRef: give both, or tokenSecretKeyRef, or none for a server without authentication"
// +kubebuilder:validation:XValidation:rule="!has(self.tokenSecretKeyRef) || !has(self.passwordSecretKeyRef)",message="a server takes either a token or a password: remove tokenSecretKeyRef, or username and passwordSecretKeyRef"
type MLflow struct {
	// baseURL is the address of the tracking server, as in MLFLOW_TRACKING_URI.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/@?#]+(/[^?#]*)?$')",message="baseURL must be http:// or https:// with a host, without a user, ? or #: a password belongs into passwordSecretKeyRef's Secret"
	// +required
	BaseURL string `json:"baseURL"`
	// experiment is the name of the run's experiment, which is created if it does not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Experiment string `json:"experiment"`
	// runName is the name of the run there. Defaults to metadata.name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	RunName string `json:"runName,omitempty"`
	// tags are given to the run when it is created.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9_./ -]{1,128}$') && !k.startsWith('tinker-operator.'))",message="names of tags have up to 128 letters, digits, spaces and _ . / -, and do not begin with tinker-operator."
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 512)",message="values of tags have up to 512 characters"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// tokenSecretKeyRef names a bearer token, which only the learner receives. A token that is added or replaced later
	// takes effect without a restart.
	// +optional
	TokenSecretKeyRef *ref.SecretKey `json:"tokenSecretKeyRef,omitempty"`
	// username is the user of basic authentication.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Username string `json:"username,omitempty"`
	// passwordSecretKeyRef names the password of username, which only the learner receives.
	// +optional
	PasswordSecretKeyRef *ref.SecretKey `json:"passwordSecretKeyRef,omitempty"`
}

// Key returns the reference to the token or the password; nil if there is neither.
func (m *MLflow) Key() *ref.SecretKey {
	if m.TokenSecretKeyRef != nil {
		return m.TokenSecretKeyRef
	}
	return m.PasswordSecretKeyRef
}

// TensorBoard writes event files below the folder tensorboard of the run's artifacts.
type TensorBoard struct {
	// runName is the name of the run in TensorBoard, and the folder of its event files. Defaults to metadata.name.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')",message="runName is the name of a folder: letters, digits and . _ -, of which the first is a letter or a digit"
	// +optional
	RunName string `json:"runName,omitempty"`
}

// WandB is Weights & Biases, or a server with the same HTTP interface. The id of the run there is the uid of the
// TrainingRun.
type WandB struct {
	// project is the project of the run, which is created if it does not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[/\\\\\\\\#?%:]')",message="project must not contain any of / \\ # ? % : (the team belongs into entity)"
	// +required
	Project string `json:"project"`
	// entity is the team or user who owns the project. Defaults to the default entity of the key's user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[/\\\\\\\\#?%:]')",message="entity must not contain any of / \\ # ? % : (the project belongs into project)"
	// +optional
	Entity string `json:"entity,omitempty"`
	// runName is the name of the run there. Defaults to metadata.name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	RunName string `json:"runName,omitempty"`
	// baseURL is the address of the server's interface.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/@?#]+(/[^?#]*)?$')",message="baseURL must be http:// or https:// with a host, without a user, ? or #: the key belongs into apiKeySecretKeyRef's Secret"
	// +kubebuilder:default="https://api.wandb.ai"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// tags are the tags of the run at the tracker.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Tags []string `json:"tags,omitempty"`
	// apiKeySecretKeyRef names the API key, which only the learner receives. A key that is added or replaced later takes
	// effect without a restart.
	// +required
	APIKeySecretKeyRef ref.SecretKey `json:"apiKeySecretKeyRef"`
}
